import Foundation
import Workload

@testable import Coffer

/// A store in a folder of its own, with a clock that the test sets.
final class BucketFixture: Sendable {
    let folder: TemporaryFolder
    let clock = HandClock()
    let store: Store

    init(_ mode: Configuration.JournalMode = .wal) throws {
        folder = try TemporaryFolder()
        store = try Self.open(folder, clock, mode)
    }

    /// Opens the file; only one store at a time.
    static func open(
        _ folder: TemporaryFolder, _ clock: HandClock, _ mode: Configuration.JournalMode = .wal,
        _ cache: BucketCache? = nil
    ) throws -> Store {
        var configuration = Configuration.testing(mode)
        configuration.bucketCache = cache
        // The clock is the test's.
        configuration.expirySweepInterval = nil
        configuration.currentDate = { clock.date }
        return try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
    }

    /// A connection of its own to the same file, as another program has it.
    func withConnection<T>(_ body: (Connection) throws -> T) throws -> T {
        let connection = try Connection(path: folder.path(), key: .numbered(1))
        defer { connection.close() }
        return try body(connection)
    }
}
