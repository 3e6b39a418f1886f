#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// One run of `verify`.
///
/// 1. In a read transaction, the run reads the pages of the main file through the engine's own
///    descriptor and authenticates them. Without WAL the transaction's lock keeps writers out. In
///    WAL a checkpoint may be half-way through a page, so a page that fails is only a suspect.
/// 2. In WAL, in a write transaction, the run reads the suspects again and checks the WAL: nobody
///    appends to it or restarts it while the write lock is held. A suspect that is stale
///    (`WALPages`) is not damaged: its frame is checked with the WAL. A store that is open for
///    reading only cannot take the lock, and checks failing pages again. Without WAL the run takes
///    no lock that would make other readers wait. If there is damage, this step also finds out what
///    the damaged pages hold.
/// 3. In another read transaction SQLite checks the structure. In a large store in WAL mode it
///    does so beside the first two steps, on another core, if the engine's check can be ended.
///    Without WAL a writer that waits for the lock of the first step would keep that transaction
///    from beginning.
///
/// If there is damage, and another process has changed the key meanwhile, the first two steps begin
/// again.
struct Verification {
    let core: StoreCore
    let scope: VerificationScope
    let progress: ((VerificationProgress) -> Void)?
    /// Of the caller's task; `nil` if nobody can cancel the run.
    var cancellation: Cancellation?
    /// Whether the run takes the write lock in WAL. Without it, it works as in a store that is open
    /// for reading only.
    var locksWriters = true
    /// The most threads that authenticate pages; `nil` for one for each core.
    var threadCountMax: Int?
    /// The size of a large store: checking both at once saves more than another connection costs.
    var overlapByteCount = 4 << 20
    /// Whether the engine's check of the structure ends when it is interrupted. Otherwise a
    /// cancellation would wait for its end.
    var endsStructureCheck = Engine.endsIntegrityCheck
    /// For tests: takes the place of `StructureCheck`.
    var checkStructure: (@Sendable (Cancellation?) -> [StructureCheck.Finding])?
    /// For tests: called in the transaction of the second step.
    var willRecheck: () -> Void = {}

    static let cancelled = StoreError(.cancelled, "the task was cancelled while it verified")

    func run() throws -> VerificationReport {
        try scope.requireValid()
        var report = VerificationReport()
        let check = checkStructure ?? StructureCheck(core: core).run
        let structure = ParallelWork { check($0) }
        defer { structure.abandon() }
        // A store in memory has no pages to draw from: only its structure can be checked.
        let hasFile = core.pool.file != nil
        if hasFile { try checkPages(&report, beside: mayOverlap ? structure : nil) }
        if scope.coversStructure || !hasFile {
            var findings = structure.output(cancellation)
            // Beside the pages, it may have found no connection.
            if structure.hasBegun, findings.contains(where: \.isBusy) {
                findings = check(cancellation)
            }
            try report.take(findings)
        }
        if !report.isGood {
            let pages = report.damagedPages + report.damagedFramePages
            core.pool.events.verificationFoundDamage(pages: pages.map(\.number))
        }
        return report
    }

    /// Whether the structure may be checked beside the pages. A body of another store must not
    /// wait for another thread.
    private var mayOverlap: Bool {
        scope.coversStructure && threadCount > 1 && core.pool.journalMode == .wal
            && endsStructureCheck && !HeldStore.isInsideAny
    }

    /// The threads that check.
    private var threadCount: Int { threadCountMax ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)) }

    // MARK: Pages

    private typealias Structure = ParallelWork<[StructureCheck.Finding]>

    /// - Parameter structure: The check of the structure that begins with the first page.
    private func checkPages(
        _ report: inout VerificationReport, beside structure: Structure?
    ) throws {
        let empty = report
        for _ in 0..<Self.keyTryCount {
            report = empty
            let key = try checkPagesOnce(&report, beside: structure)
            // All frames that another process has committed under a new key fail under this one.
            let hasDamage = !report.damagedPages.isEmpty || !report.damagedFramePages.isEmpty
            guard try hasDamage && currentKey() != key else { return }
        }
        throw StoreError(
            .busy, "other processes change the key again and again", hint: "Try again.")
    }

    private static let keyTryCount = 10

    private func currentKey() throws -> KeyID {
        try core.read(cancellation: cancellation) { tx in
            try lockedState(of: try tx.connection()).key.id()
        }
    }

    /// - Returns: The key under which the findings count.
    private func checkPagesOnce(
        _ report: inout VerificationReport, beside structure: Structure?
    ) throws -> KeyID {
        let suspects = try core.read(cancellation: cancellation) { tx in
            try checkMainFile(try tx.connection(), &report, beside: structure)
        }
        guard locksWriters, core.pool.journalMode == .wal, core.pool.mode != .readOnly else {
            return try core.read(cancellation: cancellation) { tx in
                try recheck(suspects, try tx.connection(), isLocked: false, &report)
            }
        }
        var request = WriteQueue.Request.unshared
        request.timeout = core.configuration.waitTimeout
        return try core.write(request, cancellation: cancellation) { tx in
            let connection = try tx.connection()
            // While paused, neither a write nor a checkpoint of this process moves a page.
            return try core.checkpointer.pausing { () throws in
                try recheck(suspects, connection, isLocked: true, &report)
            }
        }
    }

    /// Checks the pages of the main file that the scope selects, and counts them in the report.
    ///
    /// - Returns: The numbers, from 1, of the pages that fail; in WAL mode a checkpoint may have
    ///   been writing them.
    /// - Throws: `.cancelled` if the task was cancelled; errors of the transaction's first read.
    private func checkMainFile(
        _ connection: Connection, _ report: inout VerificationReport, beside structure: Structure?
    ) throws -> [Int] {
        let open = try lockedState(of: connection)
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        // Bytes behind the end of the database are not content.
        let fileCount = min(try pages.count(), open.handle.databasePageCount ?? .max)
        report.pageCountTotal = fileCount < pages.lockPage ? fileCount : fileCount - 1
        var generator = SystemRandomNumberGenerator()
        let chosen = scope.pages(of: fileCount, lockPage: pages.lockPage, using: &generator)
        var threadCount = threadCount
        // One connection stays for the readers of the store.
        if let structure, fileCount * pages.byteCount >= overlapByteCount,
            core.readGate.freeCount > 1
        {
            structure.begin()
            threadCount -= 1
        }
        let sweep = PageSweep(
            open.handle, key: open.key, profile: open.profile, threadCountMax: threadCount)
        let suspects = try sweep.failing(of: chosen) { count throws(StoreError) in
            report.pageCount = count
            tellProgress(report, of: chosen.count)
            guard cancellation?.isCancelled != true else { throw Self.cancelled }
        }
        return suspects
    }

    private func tellProgress(_ report: VerificationReport, of count: Int) {
        progress?(VerificationProgress(pageCount: report.pageCount, pageCountTotal: count))
    }

    /// Reads from the schema, which takes the transaction's read lock, and returns the connection's
    /// open file.
    ///
    /// - Throws: The errors of that read, such as `.wrongKey` or `.busy`.
    private func lockedState(of connection: Connection) throws -> OpenFile {
        _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
        return try connection.fileState()
    }

    /// Reads the suspect pages again, checks the WAL, and puts all findings about pages into the
    /// report.
    ///
    /// Must run under the write lock in WAL, and under a read lock without WAL or in a store that
    /// is open for reading only.
    ///
    /// - Parameters:
    ///   - suspects: Numbers of the pages that failed in the main file.
    ///   - isLocked: Whether the write lock is held; otherwise the WAL may change meanwhile.
    /// - Returns: The key under which the findings count.
    /// - Throws: `.cancelled` if the task was cancelled; `.busy` or `.io` if the WAL index cannot
    ///   be read.
    private func recheck(
        _ suspects: [Int], _ connection: Connection, isLocked: Bool,
        _ report: inout VerificationReport
    ) throws -> KeyID {
        let open = try lockedState(of: connection)
        let key = open.key.id()
        willRecheck()
        let pages = RawPages(open.handle, key: open.key, profile: open.profile)
        // Without WAL there is no WAL index, and asking for it would create one.
        let isWAL = try open.handle.firstText("PRAGMA journal_mode") == "wal"
        let log = isWAL ? WALFile(handle: open.handle) : nil
        // Read before the WAL is checked, so that every frame that `newest` relies on is checked.
        var newest = try log.flatMap { try WALPages($0, pageByteCount: pages.byteCount) }
        let found = try log.map { try WALCheck(log: $0).run(pages, isLocked: isLocked) }
        let damaged = try damaged(suspects, pages, log, &newest, isLocked: isLocked)
        report.stalePageCount = newest?.stalePageCount ?? 0
        try measureEnd(open.handle, pages, newest, &report)
        report.frameCount = found?.frameCount ?? 0
        if let frame = found?.cutOffFrame {
            report.problems.append(
                "frame \(frame + 1) of the WAL is damaged, and commits after it may be cut off: "
                    + "closing the store deletes them, so keep a copy of its -wal file")
        }
        let damagedFrames = found?.damagedPages ?? []
        guard !damaged.isEmpty || !damagedFrames.isEmpty else { return key }
        let contents = try CommittedPages(open: open, log: newest, cancellation: cancellation)
            .contents(of: Set(damaged + damagedFrames))
        report.damagedPages = damaged.map { DamagedPage($0, contents) }
        report.damagedFramePages = damagedFrames.map { DamagedPage($0, contents) }
        return key
    }

    /// Compares the size of the main file with that of the database, and puts the difference into
    /// the report: bytes behind the end, a last page that is cut short, or missing pages (as a
    /// problem). What a checkpoint will correct is not reported.
    ///
    /// - Throws: `.io` if the size of the file cannot be read.
    private func measureEnd(
        _ handle: Handle, _ pages: borrowing RawPages, _ newest: WALPages?,
        _ report: inout VerificationReport
    ) throws {
        let byteCount = try handle.rawByteCount()
        let pageCount = handle.databasePageCount ?? .max / pages.byteCount
        let surplus = byteCount - pageCount * pages.byteCount
        if surplus >= 0 {
            // The next checkpoint truncates the file to the size that the WAL states.
            report.surplusByteCount = newest.map { $0.stalePageCount > 0 } ?? false ? 0 : surplus
            return
        }
        let fileCount = try pages.count()
        if !(newest?.isStale(fileCount + 1) ?? false) {
            // Otherwise a checkpoint that was cut short has left part of a page from the WAL.
            report.trailingByteCount = byteCount % pages.byteCount
        }
        guard let pageCount = handle.databasePageCount, pageCount > fileCount else { return }
        let missing = (fileCount + 1...pageCount).filter { number in
            number != pages.lockPage && !(newest?.isStale(number) ?? false)
        }
        if let first = missing.first {
            report.problems.append(
                "the file is cut short: \(missing.count) pages are missing, from page \(first)")
        }
    }

    /// Reads the suspect pages again, several times in WAL mode. Each attempt reads all of them, so
    /// that many damaged pages do not keep the lock for long.
    ///
    /// - Returns: The numbers of the pages that fail each time and are not stale.
    /// - Throws: `.cancelled` if the task was cancelled.
    private func damaged(
        _ suspects: [Int], _ pages: borrowing RawPages, _ log: WALFile?, _ newest: inout WALPages?,
        isLocked: Bool
    ) throws -> [Int] {
        var damaged = suspects
        for attempt in 0..<(log == nil ? 1 : WALFile.tryCount) where !damaged.isEmpty {
            if attempt > 0 {
                sleepBriefly()
                // Without the lock, commits and checkpoints continue.
                if !isLocked, let log {
                    newest = try WALPages(log, pageByteCount: pages.byteCount)
                }
            }
            guard cancellation?.isCancelled != true else { throw Self.cancelled }
            var failing: [Int] = []
            for number in damaged where !(newest?.isStale(number) ?? false) {
                if try !pages.isAuthentic(number) { failing.append(number) }
            }
            damaged = failing
        }
        return damaged
    }
}
