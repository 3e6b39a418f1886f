import CFileRecorder
import Crypto
import Foundation
import Workload

@testable import Coffer

/// Does a verb that writes a keyring in a second process, and ends it at every change of a file: by
/// a kill, a power loss, or an error of the disk. Tries every credential on what is left, and then
/// the verb again.
struct KeyringVerbHarness {
    let verb: KeyringVerb
    let journalMode: Configuration.JournalMode
    /// For tests of tests: a disk that only claims to have synced.
    var ignoresSyncs = false

    private static let ownRowCount = 3
    private static let otherRowCount = 5

    /// The observable state of a store and its keyring. Two states are compared after each end of
    /// the verb.
    private struct Finding: Equatable {
        /// The number of rows, by the number of each credential that opens the store.
        var rowCounts: [UInt8: Int] = [:]
        /// How many root backups the keyring counts; `nil` if the verb makes none.
        var rootBackupCount: Int?
        /// Whether a copy of the keyring opens.
        var copyOpens = false
        /// Whether the store has another epoch than its first one; `nil` if the verb changes none.
        var isRotated: Bool?
        /// Whether the keyring has two roots.
        var isReplacingRoot = false
    }

    // MARK: Kills and power losses

    /// Replays the verb up to changes of a file, and checks the state there.
    ///
    /// - Parameters:
    ///   - step: Every how many changes; the seed chooses the first one.
    ///   - lossCount: The number of power losses after each of them, besides one kill. The seed
    ///     chooses what each loses.
    ///   - endsWithLoss: Whether the first try that lost something is the last one.
    func run(
        step: Int, lossCount: Int, endsWithLoss: Bool = false, seed: UInt64
    ) throws -> Tally {
        let original = try original()
        let (disk, said, _) = try record(in: original)
        guard said.last == "done", let end = disk.number(ofMark: "done"), end > 3 else {
            throw WorkloadError("\(verb): \(said), \(disk.changes.count) changes")
        }
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        var known: [LeftFiles: [String]] = [:]
        let first = Int.random(in: 0..<step, using: &random)
        for count in stride(from: first, through: disk.changes.count, by: step) {
            for loss in 0...lossCount {
                var generator = loss == 0 ? nil : SeededGenerator(seed: random.next())
                let folder = try TemporaryFolder()
                try disk.write(to: folder.url, after: count, lossBy: &generator)
                let left = LeftFiles(
                    digests: try files(of: folder).mapValues { Array(SHA256.hash(data: $0)) },
                    isDone: count > end,
                    isShown: disk.number(ofMark: "shown").map { count > $0 } ?? false)
                let problems =
                    try known[left]
                    ?? problems(in: folder, isDone: left.isDone, isShown: left.isShown)
                known[left] = problems
                tally.add(
                    problems,
                    "\(verb.rawValue), \(journalMode), \(loss == 0 ? "killed" : "power off") after "
                        + "\(count) of \(disk.changes.count) changes, seed \(seed)")
                if endsWithLoss, tally.lostCount > 0 { return tally }
            }
        }
        return tally
    }

    /// The files that an end of the verb left. Two ends that left the same are looked at once.
    private struct LeftFiles: Hashable {
        let digests: [String: [UInt8]]
        let isDone: Bool
        let isShown: Bool
    }

    private func problems(
        in folder: TemporaryFolder, isDone: Bool, isShown: Bool
    ) throws -> [String] {
        var problems: [String] = []
        let found = finding(in: folder)
        if isDone, found != after { problems.append("done, and there is \(found)") }
        // A restore of a store has a moment at which only it can go on. While a root is replaced,
        // the slots that stay open the store.
        let isBetween =
            verb == .restoreStore
            || (found.isReplacingRoot && found.rowCounts == after.rowCounts)
        if found != before, found != after, !isBetween {
            problems.append("there is \(found)")
        }
        if isShown, (found.rootBackupCount ?? 0) < 1 {
            problems.append("the root was shown, and the keyring does not count it")
        }
        guard found != after else { return problems }
        do {
            try verb.run(folder.path(), configuration)
            let again = finding(in: folder)
            if again != after { problems.append("after the verb again there is \(again)") }
            if verb == .restoreStore, !hasReplaced(folder) {
                problems.append("the replaced store is not whole at another name")
            }
        } catch {
            problems.append("the verb does not run again: \(error)")
        }
        return problems
    }

    /// Whether the store that a restore has replaced opens at another name, with all of its rows.
    private func hasReplaced(_ folder: TemporaryFolder) -> Bool {
        (1...3).contains { number in
            rowCount(folder.path("store.db.old-\(number)"), 3) == Self.otherRowCount
        }
    }

    // MARK: Errors of the disk

    /// Lets each change of a file fail once, and then each change and all later writes.
    ///
    /// - Parameter step: 1 lets every change fail, 2 every second one, and so on.
    func runFailures(step: Int, seed: UInt64) throws -> Tally {
        let original = try original()
        let (whole, _, _) = try record(in: original)
        let count = whole.changes.count { $0.kind != recorder_mark_text }
        var random = SeededGenerator(seed: seed)
        var tally = Tally()
        for (error, isLasting) in [(EIO, false), (ENOSPC, true)] {
            for number in stride(
                from: Int.random(in: 0..<step, using: &random), to: count, by: step)
            {
                let (disk, said, folder) = try record(
                    in: original, failing: number, error: error, isLasting: isLasting)
                let failed = disk.changes.first { $0.kind == recorder_failure }
                let isDone = said.last == "done"
                var problems = try problems(
                    in: folder, isDone: isDone, isShown: disk.number(ofMark: "shown") != nil)
                if !isDone, !Self.codes.contains(said.last ?? "") {
                    problems.append("it said \(said)")
                }
                tally.add(
                    problems,
                    "\(verb.rawValue), \(journalMode), error \(error) at change \(number), "
                        + "\(failed.map { "\($0.offset) of \($0.path)" } ?? "none"), \(said)")
            }
        }
        return tally
    }

    private static let codes: Set<String> = ["full", "io", "readOnly"]

    // MARK: What is there

    private var configuration: Configuration { .testing(journalMode).early }

    private func finding(in folder: TemporaryFolder) -> Finding {
        var finding = Finding()
        let path = folder.path()
        for credential in UInt8(0)...4 {
            finding.rowCounts[credential] = rowCount(path, credential)
        }
        if verb == .exportRoot {
            finding.rootBackupCount = (try? Keyring(of: path))?.rootBackups.count
        }
        if verb == .backUp {
            finding.copyOpens = (try? copyOpens(folder)) ?? false
        }
        if verb == .rotate || verb == .replaceRoot {
            let keyring = try? Keyring(of: path)
            finding.isRotated = keyring.map { $0.epoch > 1 }
            finding.isReplacingRoot = keyring?.isReplacingRoot ?? true
        }
        return finding
    }

    /// The rows that the credential gives access to; `nil` if it does not open the store.
    private func rowCount(_ path: String, _ credential: UInt8) -> Int? {
        try? {
            let store = try Store(
                path: path, key: KeyringVerb.key(credential), mode: .mustExist,
                configuration: configuration)
            defer { try? store.close() }
            return try store.read { tx in
                let tables = try tx.rows("SELECT 1 FROM sqlite_master").count
                return tables == 0 ? 0 : try tx.rows("SELECT v FROM t").count
            }
        }()
    }

    private func copyOpens(_ folder: TemporaryFolder) throws -> Bool {
        let copy = KeyringFile(
            at: try FileLocation(folder.path(KeyringVerb.copyName)),
            of: try FileLocation(folder.path()))
        return try copy.unlocked(
            by: KeyringVerb.credential(2), memoryMax: KeyringFixture.memoryMax) != nil
    }

    private var before: Finding {
        let rows = Self.ownRowCount
        return switch verb {
        case .initialize, .restore, .rebuild: Finding()
        case .add, .change, .remove, .backUp: Finding(rowCounts: [1: rows, 2: rows])
        case .exportRoot: Finding(rowCounts: [1: rows, 2: rows], rootBackupCount: 0)
        case .restoreStore: Finding(rowCounts: [3: Self.otherRowCount])
        case .enable: Finding(rowCounts: [0: rows])
        case .rotate, .replaceRoot: Finding(rowCounts: [1: rows, 2: rows], isRotated: false)
        }
    }

    private var after: Finding {
        let rows = Self.ownRowCount
        return switch verb {
        case .initialize: Finding(rowCounts: [1: 0])
        case .add: Finding(rowCounts: [1: rows, 2: rows, 3: rows])
        case .change: Finding(rowCounts: [1: rows, 3: rows])
        case .remove: Finding(rowCounts: [1: rows])
        case .restore, .restoreStore: Finding(rowCounts: [1: rows, 2: rows])
        case .rebuild: Finding(rowCounts: [3: rows])
        case .backUp: Finding(rowCounts: [1: rows, 2: rows], copyOpens: true)
        case .exportRoot: Finding(rowCounts: [1: rows, 2: rows], rootBackupCount: 1)
        case .enable: Finding(rowCounts: [1: rows])
        case .rotate: Finding(rowCounts: [1: rows, 2: rows], isRotated: true)
        case .replaceRoot: Finding(rowCounts: [1: rows], isRotated: true)
        }
    }

    // MARK: The beginning

    /// The files with which the verb begins.
    private func original() throws -> [String: [UInt8]] {
        let folder = try TemporaryFolder()
        let path = folder.path()
        guard verb != .initialize else { return [:] }
        let store = try make(
            path, rowCount: Self.ownRowCount, credential: verb == .enable ? 0 : 1)
        if verb != .enable { try store.keys.add(KeyringVerb.slot(2), label: "2") }
        switch verb {
        case .restore:
            try store.keys.backUp(to: folder.path(KeyringVerb.copyName))
        case .rebuild:
            try store.keys.withRootBackup { letters in
                try Data(letters).write(to: folder.url.appending(path: KeyringVerb.lettersName))
            }
        case .restoreStore:
            try store.backup(to: folder.path(KeyringVerb.backupName))
        default: break
        }
        try store.close()
        switch verb {
        case .restore:
            try Data(repeating: 1, count: KeyringFile.byteCount)
                .write(to: URL(filePath: path + KeyringFile.suffix))
        case .rebuild:
            unlinkIfPresent(path + KeyringFile.suffix)
        case .restoreStore:
            return try filesOfReplacedStore(folder)
        default: break
        }
        return try files(of: folder)
    }

    /// The backup, and a store in whose WAL are commits that its file does not have.
    private func filesOfReplacedStore(_ folder: TemporaryFolder) throws -> [String: [UInt8]] {
        removeStore(folder.path())
        unlinkIfPresent(folder.path() + KeyringFile.suffix)
        let other = try make(folder.path(), rowCount: Self.otherRowCount - 1, credential: 3)
        try other.checkpoint(.truncate)
        try other.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        let files = try files(of: folder).filter { !$0.key.hasSuffix("-shm") }
        try other.close()
        return files
    }

    private func make(_ path: String, rowCount: Int, credential: UInt8) throws -> Store {
        let store = try Store(
            path: path, key: KeyringVerb.key(credential), configuration: configuration)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            for _ in 0..<rowCount { try tx.execute("INSERT INTO t VALUES (1)") }
        }
        return store
    }

    private func files(of folder: TemporaryFolder) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
            files[name] = [UInt8](try Data(contentsOf: folder.url.appending(path: name)))
        }
        return files
    }

    // MARK: The verb

    private func record(
        in original: [String: [UInt8]], failing number: Int = -1, error: Int32 = 0,
        isLasting: Bool = false
    ) throws -> (RecordedDisk, said: [String], TemporaryFolder) {
        let (folder, recordFolder) = (try TemporaryFolder(), try TemporaryFolder())
        for (name, bytes) in original {
            try Data(bytes).write(to: folder.url.appending(path: name))
        }
        let record = recordFolder.path("record")
        let said = try Peer.run([
            "keyring", verb.rawValue, journalMode.description, folder.path(), record, "\(number)",
            "\(error)", isLasting ? "lasting" : "once",
        ])
        var disk = try RecordedDisk(original, record: record, of: folder.url)
        disk.ignoresSyncs = ignoresSyncs
        return (disk, said, folder)
    }
}
