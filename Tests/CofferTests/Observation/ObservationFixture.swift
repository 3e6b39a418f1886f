import Synchronization
import Testing

@testable import Coffer

/// A store with tables of every kind that observing must distinguish.
struct ObservationFixture {
    let folder: TemporaryFolder
    let path: String
    let store: Store

    init(
        _ mode: Configuration.JournalMode = .wal,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws {
        folder = try TemporaryFolder()
        path = folder.path()
        var configuration = Configuration.testing(mode)
        configuration.foreignCommitInterval = nil
        change(&configuration)
        store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try store.write { tx in
            for sql in Self.schema { try tx.execute(SQL(text: sql)) }
        }
    }

    private static let schema = [
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v, u UNIQUE)",
        "CREATE TABLE w(k TEXT PRIMARY KEY, v, u UNIQUE) WITHOUT ROWID",
        "CREATE TABLE other(v)",
        "CREATE TABLE child(t REFERENCES t(id) ON DELETE CASCADE, v)",
        "CREATE TABLE log(m)",
        "CREATE VIEW joined AS SELECT t.v AS tv, child.v AS cv FROM child JOIN t ON t.id = child.t",
        """
        CREATE TRIGGER noted AFTER INSERT ON other WHEN new.v = 'log' BEGIN
            INSERT INTO log VALUES ('noted');
        END
        """,
        "CREATE INDEX childIndex ON child(t)",
    ]

    /// The synchronous form, for asynchronous tests.
    @discardableResult
    func write<T>(_ body: (inout WriteTransaction) throws -> T) throws -> T {
        try store.write(body)
    }

    func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try store.read(body)
    }

    /// The tables that have temporary triggers on the writer.
    func triggers() throws -> Set<String> {
        try store.write { tx in
            Set(
                try tx.rows("SELECT tbl_name FROM sqlite_temp_master WHERE type = 'trigger'").map {
                    try $0.read("tbl_name", as: String.self)
                })
        }
    }

    func run(_ statements: String...) throws {
        try store.write { tx in
            for sql in statements { try tx.execute(SQL(text: sql)) }
        }
    }
}

/// Counts, from any thread.
final class Counter: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .sequentiallyConsistent) }

    func add() { value.add(1, ordering: .sequentiallyConsistent) }
}

struct Undo: Error {}

extension ObservedChanges.Iterator {
    /// The rows of the next event, as `insert t 1`.
    func rows() async throws -> [String] {
        guard let event = try await next() else { return ["end"] }
        return event.texts
    }
}

extension ChangeEvent {
    var texts: [String] {
        switch self {
        case .commit(let rows): rows.map(\.text)
        case .rescan(let reason): ["rescan \(reason)"]
        }
    }
}

extension ChangedRow {
    var text: String { "\(kind.rawValue) \(table) \(key.map(\.short).joined(separator: ","))" }
}

extension Value {
    fileprivate var short: String {
        switch self {
        case .null: "NULL"
        case .integer(let integer): "\(integer)"
        case .real(let real): "\(real)"
        case .text(let text): text
        case .blob(let data): "\(data.count) bytes"
        }
    }
}
