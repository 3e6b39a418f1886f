import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// A store with numbered rows, its remote in memory, and clocks that a test puts forward.
final class ReplicaFixture: Sendable {
    let folder: TemporaryFolder
    let remote: MemoryRemote
    /// When the fixture was made, by the clock of the remote.
    static let start = Date(timeIntervalSince1970: 1_900_000_000)
    private let passed = Mutex(Duration.zero)
    private let startInstant = ContinuousClock.now

    init(tellsTimeOfReads: Bool = true) throws {
        folder = try TemporaryFolder()
        remote = MemoryRemote(
            place: "memory of \(UUID())", tellsTimeOfReads: tellsTimeOfReads)
    }

    /// A replica that sends when it is asked to. All clocks are right.
    var options: ReplicaOptions {
        var options = ReplicaOptions.testing
        options.sleep = { _ in throw CancellationError() }
        options.currentDate = { self.date }
        options.currentInstant = { self.startInstant + self.passed.withLock(\.self) }
        return options
    }

    var date: Date { Self.start + passed.withLock { $0 / .seconds(1) } }

    func advance(_ duration: Duration) {
        remote.advance(duration / .seconds(1))
        passed.withLock { $0 += duration }
    }

    /// Lets a day go by, and makes a snapshot.
    @discardableResult
    func nextDay(_ replica: Replica) async throws -> Bool {
        advance(.seconds(86_500))
        try await tellTime(to: replica)
        try await replica.caughtUp()
        return try await replica.maintain()
    }

    /// Nobody else would ask an idle replica's remote for the time.
    func tellTime(to replica: Replica) async throws {
        _ = try await replica.reader.access.create("clock", [1])
    }

    // MARK: Stores

    func open(_ name: String = "store.db") throws -> Store {
        try Store(path: folder.path(name), key: .numbered(1), configuration: .testing())
    }

    func makeStore() throws -> Store {
        let store = try open()
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v INTEGER PRIMARY KEY, filler)")
        }
        return store
    }

    func insert(_ numbers: some Sequence<Int>, _ byteCount: Int = 3000, in store: Store) throws {
        try store.write { tx in
            for number in numbers {
                try tx.execute("INSERT INTO t VALUES (\(number), randomblob(\(byteCount)))")
            }
        }
    }

    func numbers(in store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) } }
    }

    /// Copies a store that is open, byte by byte: the copy is the same file to a replica.
    func copy(_ store: Store, as name: String) throws -> Store {
        try store.checkpoint(.truncate)
        // In a process of its own: to close a descriptor of the file drops the locks of SQLite.
        let process = Process()
        process.executableURL = URL(filePath: "/bin/cp")
        process.arguments = [folder.path(), folder.path(name)]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return try open(name)
    }

    // MARK: What the remote has

    func keys(of store: Store) async throws -> ReplicaKeys {
        let description = try await ReplicaDescription.existing(.testing(remote))
        return ReplicaKeys(try store.replicaSource().secret(), replica: description.replicaNumber)
    }

    func reader(of store: Store) async throws -> LogReader {
        LogReader(access: .testing(remote), keys: try await keys(of: store))
    }

    func history() async throws -> ReplicaHistory {
        try await ReplicaHistory(of: remote, key: .numbered(1))
    }

    func restoredNumbers(at moment: ReplicaMoment) async throws -> [Int] {
        let path = folder.path("copy.db")
        defer { removeStore(path) }
        try await Store.restore(
            from: remote, to: path, key: .numbered(1), at: moment, configuration: .testing())
        let copy = try open("copy.db")
        defer { try? copy.close() }
        return try numbers(in: copy)
    }
}
