import Synchronization

@testable import Coffer

/// Runs migrations on a store one after the other, each under a name of its own.
final class Migrator: Sendable {
    private let store: Store
    private let done = Mutex<[Migration]>([])

    init(_ store: Store) { self.store = store }

    /// Runs one migration. One that fails is not part of the next list.
    func run(_ body: @escaping @Sendable (inout WriteTransaction) throws -> Void) throws {
        var migrations = done.withLock { $0 }
        migrations.append(Migration("number \(migrations.count + 1)", body))
        try store.migrate(migrations)
        let all = migrations
        done.withLock { $0 = all }
    }
}
