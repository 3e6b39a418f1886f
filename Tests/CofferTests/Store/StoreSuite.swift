@testable import Coffer

/// Tests of a store with one table of numbers.
protocol StoreSuite {
    var folder: TemporaryFolder { get }
}

extension StoreSuite {
    var path: String { folder.path() }

    func make(
        _ configuration: Configuration = .testing(), mode: OpenMode = .createIfMissing
    ) throws -> Store {
        let store = try Store(
            path: path, key: .numbered(1), mode: mode, configuration: configuration)
        if mode == .createIfMissing {
            try store.write { tx in try tx.execute("CREATE TABLE IF NOT EXISTS t(v)") }
        }
        return store
    }

    func openAgain() throws { _ = try Store(path: path, key: .numbered(1)) }

    func values(_ store: Store) throws -> [Int] {
        try store.read { tx in try tx.rows("SELECT v FROM t ORDER BY rowid").map { try $0.get(0) } }
    }
}
