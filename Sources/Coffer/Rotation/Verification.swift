import CSQLCipher

/// One run of `verify`.
///
/// 1. In a read transaction, every page of the main file is read through the engine's own
///    descriptor and authenticated. Without WAL the transaction's lock keeps writers out; in WAL a
///    checkpoint may be half-way through a page, so a page that fails is only suspected.
/// 2. In WAL, in a write transaction, the suspects are read again and the log is checked: nobody
///    appends to it or starts it anew while the write lock is held. Without WAL no lock is asked
///    for that would make others wait.
/// 3. In another read transaction SQLite checks the structure.
struct Verification {
    let core: StoreCore
    let progress: ((VerificationProgress) -> Void)?

    private static let pagesPerStep = 256
    /// A checkpoint of another process writes a page in far less time than all tries take.
    private static let tryCount = 20

    func run(isCancelled: () -> Bool) throws -> VerificationReport {
        var report = VerificationReport()
        let suspects = try core.read { tx in
            try checkMainFile(try tx.connection(), &report, isCancelled)
        }
        if core.configuration.journalMode == .wal, core.pool.mode != .readOnly {
            try core.write { tx in try recheck(suspects, try tx.connection(), &report) }
        } else {
            try core.read { tx in try recheck(suspects, try tx.connection(), &report) }
        }
        try checkStructure(&report)
        return report
    }

    // MARK: Pages

    /// Numbers of the pages that failed at the first look.
    private func checkMainFile(
        _ connection: Connection, _ report: inout VerificationReport, _ isCancelled: () -> Bool
    ) throws -> [Int] {
        // The first read takes the transaction's lock.
        _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
        let open = try connection.current()
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        let byteCount = try open.handle.rawByteCount()
        let pageCount = byteCount / pages.byteCount
        report.trailingByteCount = byteCount % pages.byteCount
        var suspects: [Int] = []
        for number in stride(from: 1, through: pageCount, by: 1) where number != pages.lockPage {
            if number % Self.pagesPerStep == 0 {
                guard !isCancelled() else {
                    throw StoreError(.cancelled, "the task was cancelled while it verified")
                }
                progress?(VerificationProgress(pageCount: number, pageCountTotal: pageCount))
            }
            if try !pages.isAuthentic(number) { suspects.append(number) }
            report.pageCount += 1
        }
        progress?(VerificationProgress(pageCount: pageCount, pageCountTotal: pageCount))
        return suspects
    }

    /// Runs under the write lock in WAL, under a read lock without.
    private func recheck(
        _ suspects: [Int], _ connection: Connection, _ report: inout VerificationReport
    ) throws {
        let open = try connection.current()
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        for number in suspects {
            var isGood = false
            for attempt in 0..<Self.tryCount where !isGood {
                if attempt > 0 { sleepBriefly() }
                isGood = try pages.isAuthentic(number)
            }
            if !isGood { report.damagedPages.append(number) }
        }
        // Without WAL there is no index to ask, and asking would make one.
        guard try open.handle.firstText("PRAGMA journal_mode") == "wal" else { return }
        try LogCheck(open: open, pages: pages).run(&report)
    }

    // MARK: Structure

    private func checkStructure(_ report: inout VerificationReport) throws {
        var problems: [String] = []
        do {
            problems += try core.read { tx in
                try tx.rows("PRAGMA integrity_check").map { try $0.get(0) }.filter { $0 != "ok" }
            }
            problems += try core.read { tx in
                try tx.rows("PRAGMA foreign_key_check").map { row in
                    let rowID = try row.get(1, as: Int?.self).map(String.init) ?? "without row id"
                    return "row \(rowID) of \(try row.get(0, as: String.self)) refers to a row of "
                        + "\(try row.get(2, as: String.self)) that is not there"
                }
            }
        } catch let error as StoreError where error.code == .damaged || error.code == .sql {
            // SQLCipher 4 fails the pragma itself.
            problems.append("the structure could not be checked to its end: \(error.message)")
        }
        report.problems = problems
    }
}
