/// One run of `verify`.
///
/// 1. In a read transaction, the pages of the main file are read through the engine's own
///    descriptor and authenticated. Without WAL the transaction's lock keeps writers out; in WAL a
///    checkpoint may be half-way through a page, so a page that fails is only suspected.
/// 2. In WAL, in a write transaction, the suspects are read again and the log is checked: nobody
///    appends to it or starts it anew while the write lock is held. A suspect that is stale
///    (`LogPages`) is not damaged: its frame is judged with the log. A store that is open for
///    reading only cannot take the lock and looks again at what fails. Without WAL no lock is asked
///    for that would make others wait. If there is damage, what it concerns is found out here.
/// 3. In another read transaction SQLite checks the structure.
struct Verification {
    let core: StoreCore
    let scope: VerificationScope
    let progress: ((VerificationProgress) -> Void)?
    let isCancelled: () -> Bool

    private static let pagesPerStep = 256

    static let cancelled = StoreError(.cancelled, "the task was cancelled while it verified")

    func run() throws -> VerificationReport {
        try scope.requireValid()
        var report = VerificationReport()
        // In memory there are no pages to draw from: the structure is all there is to check.
        let hasFile = core.pool.file != nil
        if hasFile { try checkPages(&report) }
        if scope.coversStructure || !hasFile { try checkStructure(&report) }
        if !report.isGood {
            let pages = report.damagedPages + report.damagedFramePages
            core.pool.events.verificationFoundDamage(pages: pages.map(\.number))
        }
        return report
    }

    // MARK: Pages

    private func checkPages(_ report: inout VerificationReport) throws {
        let suspects = try core.read { tx in try checkMainFile(try tx.connection(), &report) }
        if core.pool.journalMode == .wal, core.pool.mode != .readOnly {
            var request = WriteQueue.Request.alone
            request.timeout = core.configuration.waitTimeout
            try core.write(request) { tx in
                let connection = try tx.connection()
                // Neither a write nor a checkpoint of this process moves a page meanwhile.
                try core.checkpointer.pausing { () throws in
                    try recheck(suspects, connection, isLocked: true, &report)
                }
            }
        } else {
            try core.read { tx in
                try recheck(suspects, try tx.connection(), isLocked: false, &report)
            }
        }
    }

    /// Numbers of the pages that failed at the first look.
    private func checkMainFile(
        _ connection: Connection, _ report: inout VerificationReport
    ) throws -> [Int] {
        let open = try lockedState(of: connection)
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        // What is behind the end of the database is not content.
        let fileCount = min(try pages.count(), open.handle.databasePageCount ?? .max)
        report.pageCountTotal = fileCount < pages.lockPage ? fileCount : fileCount - 1
        var generator = SystemRandomNumberGenerator()
        let chosen = scope.pages(of: fileCount, lockPage: pages.lockPage, using: &generator)
        var suspects: [Int] = []
        for number in chosen {
            if report.pageCount % Self.pagesPerStep == Self.pagesPerStep - 1 {
                guard !isCancelled() else { throw Self.cancelled }
                tellProgress(report, of: chosen.count)
            }
            if try !pages.isAuthentic(number) { suspects.append(number) }
            report.pageCount += 1
        }
        tellProgress(report, of: chosen.count)
        return suspects
    }

    private func tellProgress(_ report: VerificationReport, of count: Int) {
        progress?(VerificationProgress(pageCount: report.pageCount, pageCountTotal: count))
    }

    /// The first read takes the transaction's lock.
    private func lockedState(of connection: Connection) throws -> Connection.FileState {
        _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
        return try connection.fileState()
    }

    /// Runs under the write lock in WAL, under a read lock without WAL or if the store is open for
    /// reading only.
    private func recheck(
        _ suspects: [Int], _ connection: Connection, isLocked: Bool,
        _ report: inout VerificationReport
    ) throws {
        let open = try lockedState(of: connection)
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        // Without WAL there is no index to ask, and asking would make one.
        let isWAL = try open.handle.firstText("PRAGMA journal_mode") == "wal"
        let log = isWAL ? LogFile(handle: open.handle) : nil
        // Before the log is checked, so that every frame that it counts on is judged.
        var newest = try log.flatMap { try LogPages($0, pageByteCount: pages.byteCount) }
        let found = try log.map { try LogCheck(log: $0).run(pages, isLocked: isLocked) }
        let damaged = try damaged(suspects, pages, log, &newest, isLocked: isLocked)
        report.stalePageCount = newest?.stalePageCount ?? 0
        try measureEnd(open.handle, pages, newest, &report)
        report.frameCount = found?.frameCount ?? 0
        if let frame = found?.cutOffFrame {
            report.problems.append(
                "frame \(frame + 1) of the log is damaged, and commits behind it may be cut off: "
                    + "closing the store deletes them, so keep a copy of its -wal file")
        }
        let damagedFrames = found?.damagedPages ?? []
        guard !damaged.isEmpty || !damagedFrames.isEmpty else { return }
        let contents = try CommittedPages(open: open, log: newest, isCancelled: isCancelled)
            .contents(of: Set(damaged + damagedFrames))
        report.damagedPages = damaged.map { DamagedPage($0, contents) }
        report.damagedFramePages = damagedFrames.map { DamagedPage($0, contents) }
    }

    /// Tells a last page that is cut short from bytes behind the end of the database.
    private func measureEnd(
        _ handle: Handle, _ pages: borrowing RawPages, _ newest: LogPages?,
        _ report: inout VerificationReport
    ) throws {
        let byteCount = try handle.rawByteCount()
        let pageCount = handle.databasePageCount ?? .max / pages.byteCount
        let surplus = byteCount - pageCount * pages.byteCount
        if surplus >= 0 {
            // The next checkpoint cuts the file off where the log says that it ends.
            report.surplusByteCount = newest.map { $0.stalePageCount > 0 } ?? false ? 0 : surplus
            return
        }
        let fileCount = try pages.count()
        if !(newest?.isStale(fileCount + 1) ?? false) {
            // Otherwise a checkpoint that was cut short has left a part of a page of the log.
            report.trailingByteCount = byteCount % pages.byteCount
        }
        guard let pageCount = handle.databasePageCount, pageCount > fileCount else { return }
        let missing = (fileCount + 1...pageCount).filter { number in
            number != pages.lockPage && !(newest?.isStale(number) ?? false)
        }
        if let first = missing.first {
            report.problems.append(
                "the file is cut short: \(missing.count) pages from page \(first) on are missing")
        }
    }

    /// The suspects that are not stale and fail each time. All are read before one is read again,
    /// so that many damaged pages do not keep the lock for long.
    private func damaged(
        _ suspects: [Int], _ pages: borrowing RawPages, _ log: LogFile?, _ newest: inout LogPages?,
        isLocked: Bool
    ) throws -> [Int] {
        var damaged = suspects
        for attempt in 0..<(log == nil ? 1 : LogFile.tryCount) where !damaged.isEmpty {
            if attempt > 0 {
                sleepBriefly()
                // Without the lock commits and checkpoints go on.
                if !isLocked, let log {
                    newest = try LogPages(log, pageByteCount: pages.byteCount)
                }
            }
            guard !isCancelled() else { throw Self.cancelled }
            var failing: [Int] = []
            for number in damaged where !(newest?.isStale(number) ?? false) {
                if try !pages.isAuthentic(number) { failing.append(number) }
            }
            damaged = failing
        }
        return damaged
    }

    // MARK: Structure

    private func checkStructure(_ report: inout VerificationReport) throws {
        let isIntact = try checkStructure(&report) { tx in
            try tx.rows("PRAGMA integrity_check").map { try $0.get(0) }.filter { $0 != "ok" }
        }
        let refersWell = try checkStructure(&report) { tx in
            try tx.rows("PRAGMA foreign_key_check").map { row in
                let rowID = try row.get(1, as: Int?.self).map(String.init) ?? "without row id"
                return "row \(rowID) of \(try row.get(0, as: String.self)) refers to a row of "
                    + "\(try row.get(2, as: String.self)) that is not there"
            }
        }
        report.isStructureChecked = isIntact && refersWell
    }

    /// Returns whether SQLite's check ran, and found something or not.
    private func checkStructure(
        _ report: inout VerificationReport, _ problems: (inout ReadTransaction) throws -> [String]
    ) throws -> Bool {
        do {
            report.problems += try core.read(problems)
            return true
        } catch let error as StoreError where error.isInability && report.damagedPages.isEmpty {
            // Such as a collation or a function that only the program registers. A page that failed
            // in the transaction would have made it `.damaged`.
            report.structureFailure = error.message
            return false
        } catch let error as StoreError
            where [.damaged, .sql].contains(error.code)
            || error.code == .io && !report.damagedPages.isEmpty
        {
            // SQLCipher 4 fails the pragma itself.
            let text = "the structure could not be checked to its end: \(error.message)"
            if !report.problems.contains(text) { report.problems.append(text) }
            return true
        }
    }
}

extension StoreError {
    /// Whether SQLite could not compile or run one of its own checks, if the pages are authentic:
    /// the schema needs a collation or a function that this program does not have.
    var isInability: Bool { code == .sql && (resultCode ?? 0) & 0xff == 1 }
}
