import Coffer

/// The report of `rekey --dry-run`.
struct RekeyObstacles: Report {
    let path: ReportedPath
    let dryRun = true
    let isChanged: Bool
    /// The key that opens the store now.
    let key: String
    let isWholeFile: Bool
    let profile: String
    let journalMode: String
    let pageCount: Int
    let oldPageCount: Int
    let neededByteCount: Int
    let freeByteCount: Int?
    let isWritable: Bool
    /// Reasons why the change would fail.
    let obstacles: [String]
    /// Facts to know before the change.
    let notes: [String]
    /// Whether an earlier change left nothing to do. It is not in the JSON.
    private let isFinished: Bool
    /// The exit code of the change; `nil` for success. It is not in the JSON.
    let exitStatus: ExitStatus?

    private enum CodingKeys: CodingKey {
        case path, dryRun, isChanged, key, isWholeFile, profile, journalMode, pageCount,
            oldPageCount
        case neededByteCount, freeByteCount, isWritable, obstacles, notes
    }

    init(_ found: RekeyRehearsal, _ locks: LockHolders) {
        path = ReportedPath(found.path)
        isChanged = found.isChanged
        key = found.isChanged ? "new" : "current"
        isWholeFile = found.oldPageCount == 0
        isFinished = isWholeFile && (try? Keyring.exists(for: found.path)) != true
        profile = found.profile.description
        journalMode = found.journalMode.description
        pageCount = found.pageCount
        oldPageCount = found.oldPageCount
        neededByteCount = found.neededByteCount
        freeByteCount = found.freeByteCount
        isWritable = found.isWritable
        let obstacles = Self.obstacles(found, locks)
        self.obstacles = obstacles.map(\.text)
        exitStatus = obstacles.first?.status
        notes = Self.notes(found, locks)
    }

    private static func obstacles(
        _ found: RekeyRehearsal, _ locks: LockHolders
    ) -> [(status: ExitStatus, text: String)] {
        var obstacles: [(ExitStatus, String)] = []
        // Comes first, because a concurrent writer may invalidate the other findings.
        if !found.isChanged, let holder = found.journalMode == .wal ? locks.writer : locks.user {
            obstacles.append((.busy, "process \(holder) has a lock on the store"))
        }
        if !found.isWritable {
            obstacles.append((.notWritable, "this user cannot write the file or its folder"))
        }
        if !found.hasOneName {
            obstacles.append((.notWritable, "the file has another name (hard link)"))
        }
        if found.isCutShort { obstacles.append((.damaged, "the end of the file is missing")) }
        if !found.damagedPages.isEmpty {
            let pages = PageRuns.text(of: found.damagedPages)
            obstacles.append((.damaged, "pages fail authentication: \(pages)"))
        }
        // A key that was changed earlier needs neither the lock nor the space.
        guard !found.isChanged else { return obstacles }
        if found.surplusByteCount > 0 {
            let text = "\(found.surplusByteCount) bytes follow the end of the database"
            obstacles.append((.damaged, text + ": change the key of a copy made by backup"))
        }
        // The change appends to a WAL that another process reads.
        let isLogKept = locks.reader != nil
        if let limit = found.maximumWritableByteCount, !found.maySize(isLogKept: isLogKept) {
            let text = "this process cannot write a file of more than \(limit) bytes (ulimit -f)"
            obstacles.append((.io, text))
        }
        if !found.hasRoom(isLogKept: isLogKept) {
            obstacles.append((.io, "the disk does not have enough room"))
        }
        return obstacles
    }

    private static func notes(_ found: RekeyRehearsal, _ locks: LockHolders) -> [String] {
        var notes: [String] = []
        if found.isCutShort || !found.damagedPages.isEmpty {
            notes.append("damaged: \(Remedy.ofDamage(to: found.path))")
        }
        if let reader = locks.reader, found.journalMode == .wal {
            notes.append(
                "process \(reader) is reading: until it ends, the main file without its WAL "
                    + "keeps the old key")
        }
        if let keyring = try? Keyring(of: found.path) {
            notes.append(
                "the keyring is renamed: its \(keyring.slots.count.counted("slot")) then open "
                    + "earlier copies, and not the store")
        }
        if let user = locks.user, !found.isChanged {
            notes.append(
                "process \(user) has the store open, and gets \"wrong key\" after the change")
        }
        return notes
    }

    var lines: [(label: String, value: String)] {
        let free = freeByteCount.map { "\($0) are free" } ?? "the free space is unknown"
        var lines = [
            ("store", "\(path)"), ("profile", profile),
            (
                "key",
                isChanged ? "the new one opens it already" : "the current one opens it"
            ),
            ("journal mode", journalMode), ("pages", "\(pageCount)"),
            ("room", "\(neededByteCount) bytes needed, \(free)"),
            ("permissions", isWritable ? "writable" : "not writable"),
        ]
        if isChanged, !isWholeFile {
            lines.append(("main file", "\(oldPageCount) pages still have the old key"))
        }
        lines += obstacles.map { ("obstacle", $0) } + notes.map { ("note", $0) }
        lines.append(("result", obstacles.isEmpty ? plan : "it would fail; nothing was changed"))
        return lines
    }

    private var plan: String {
        if !isChanged { return "it would change the key; nothing was changed" }
        return isFinished ? "nothing is left to do" : "it would finish the earlier change"
    }
}
