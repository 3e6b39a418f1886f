import Foundation
import Testing

@testable import Coffer

/// A small store whose schema overflows, with one object as the last of it, and every way to ask a
/// question whose answer depends on that object.
struct SchemaFixture {
    /// The object whose text ends in the last overflow page of the schema. Cut off at a page's
    /// end, `view` and `index` are valid SQL that says something else.
    enum LastObject: CaseIterable {
        case view, index, trigger, columnDefault

        /// Long enough to overflow several pages of each size.
        private static let spaces = String(repeating: " ", count: 8192)

        var sql: String {
            let spaces = Self.spaces
            return switch self {
            case .view:
                "CREATE VIEW visible AS SELECT id, title FROM note WHERE 1\(spaces)AND secret = 0"
            case .index:
                "CREATE UNIQUE INDEX titles ON note(title) WHERE 1\(spaces)AND secret = 0"
            case .trigger:
                """
                CREATE TRIGGER guard BEFORE INSERT ON note WHEN NEW.secret > 5 BEGIN
                SELECT RAISE(ABORT, 'secret');\(spaces)END
                """
            case .columnDefault: "CREATE TABLE other(a, b DEFAULT 1\(spaces), c DEFAULT 2)"
            }
        }
    }

    enum Way: CaseIterable {
        case store, readOnlyStore, rows, deferred, prepared, script, attached, adopted, decrypted
    }

    enum Rewrite: CaseIterable {
        case rekey, vacuum, storeRekey
    }

    let last: LastObject
    let profile: CipherProfile
    let pageCount: Int
    private let bytes: Data

    init(_ path: String, _ last: LastObject, _ profile: CipherProfile) throws {
        self.last = last
        self.profile = profile
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        try Self.fill(connection)
        try connection.execute(SQL(text: last.sql))
        connection.close()
        bytes = try Data(contentsOf: URL(filePath: path))
        pageCount = bytes.count / profile.pageByteCount
    }

    /// All ways for the objects whose cut text is valid SQL.
    var ways: [Way] {
        isLongRun || last == .view || last == .index ? Way.allCases : [.store, .rows]
    }

    /// Only the engine distinguishes the kinds, so only the two most used ways see all of them.
    func kinds(by way: Way) -> [PageDamage] {
        isLongRun || way == .store || way == .rows ? PageDamage.allCases : [.bit, .zeros]
    }

    static func fill(_ connection: Connection) throws {
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, title, secret)")
        try connection.execute("INSERT INTO note VALUES (1, 'open', 0), (2, 'hidden', 1)")
    }

    /// Writes the store with one page damaged.
    @discardableResult
    func write(to path: String, _ kind: PageDamage, page: Int) throws -> Data {
        var copy = [UInt8](bytes)
        let size = profile.pageByteCount
        kind.apply(
            to: &copy[(page - 1) * size..<page * size],
            reservedByteCount: profile == .sqlcipher4 ? 80 : 48, seed: UInt64(page))
        let data = Data(copy)
        try data.write(to: URL(filePath: path))
        return data
    }

    // MARK: Questions

    /// Asks what the last object decides; for the index by a write that it allows.
    private var sql: String {
        switch last {
        case .view: "SELECT title FROM visible"
        case .index: "INSERT INTO note VALUES (3, 'open', 1)"
        case .trigger: "INSERT INTO note VALUES (3, 'third', 5)"
        case .columnDefault: "INSERT INTO other(a) VALUES (1)"
        }
    }

    var truth: [String] { last == .view ? ["open"] : [] }

    private var configuration: Configuration { .testing(.existing) }

    /// The answer that a program gets.
    func ask(_ way: Way, _ path: String) throws -> [String] {
        switch way {
        case .store: try askStore(path, .mustExist)
        case .readOnlyStore: try askStore(path, .readOnly)
        case .attached: try askAttached(path)
        case .adopted: try askAdopted(path)
        case .decrypted: try askDecrypted(path)
        case .rows, .deferred, .prepared, .script: try askConnection(way, path)
        }
    }

    private func askStore(_ path: String, _ mode: OpenMode) throws -> [String] {
        let store = try Store(
            path: path, key: .numbered(1), mode: mode, configuration: configuration)
        defer { try? store.close() }
        let question = SQL(text: sql)
        if last == .view {
            return try store.read { tx in try texts(try tx.rows(question)) }
        }
        guard mode != .readOnly else { return [] }
        try store.write { tx in _ = try tx.execute(question) }
        return []
    }

    private func askConnection(_ way: Way, _ path: String) throws -> [String] {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: configuration)
        defer { connection.close() }
        switch way {
        case .deferred:
            return try connection.transaction(.deferred) {
                try texts(try connection.rows(SQL(text: sql)))
            }
        case .prepared:
            let statement = try connection.prepare(sql)
            var found: [String] = []
            while try statement.step() {
                found.append(try statement.value(at: 0, as: String.self))
            }
            return found
        case .script:
            return try sql.withCString { text in
                let statement = try #require(try connection.prepareFirst(of: text).statement)
                var found: [String] = []
                while try statement.step() {
                    found.append(try statement.value(at: 0, as: String.self))
                }
                return found
            }
        default: return try texts(try connection.rows(SQL(text: sql)))
        }
    }

    private func askAttached(_ path: String) throws -> [String] {
        let connection = try Connection(.memory, configuration: .testing(profile: profile))
        defer { connection.close() }
        try connection.attach(path, as: "other_file", key: .numbered(1))
        let qualified = sql.replacing("FROM ", with: "FROM other_file.")
            .replacing("INTO ", with: "INTO other_file.")
        return try texts(try connection.rows(SQL(text: qualified)))
    }

    private func askAdopted(_ path: String) throws -> [String] {
        let raw = try RawConnection(path, key: 1, pragmas: profile.pragmas)
        let connection = try Connection(adopting: raw.db)
        defer { connection.close() }
        return try texts(try connection.rows(SQL(text: sql)))
    }

    private func askDecrypted(_ path: String) throws -> [String] {
        let target = path + ".plain"
        defer { removeStore(target) }
        let store = try Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: configuration)
        defer { try? store.close() }
        try store.decrypt(to: target)
        let plain = try RawConnection(target)
        return last == .view ? [try #require(plain.first(sql))] : []
    }

    private func texts(_ rows: [Row]) throws -> [String] {
        try rows.map { try $0.get(0) }
    }

    // MARK: Rewriting every page

    func rewrite(_ way: Rewrite, _ path: String) throws {
        if way == .storeRekey {
            let store = try Store(
                path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
            defer { try? store.close() }
            try store.rekey(to: .numbered(2))
            return
        }
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: configuration)
        defer { connection.close() }
        if way == .rekey {
            try connection.rekey(to: .numbered(2))
            return
        }
        try connection.execute("VACUUM")
    }
}

extension CipherProfile {
    /// The settings of a program that opens such a file by hand.
    fileprivate var pragmas: [String] {
        let hash = self.hash == .sha512 ? "SHA512" : "SHA1"
        return [
            "PRAGMA cipher_page_size = \(pageByteCount)",
            "PRAGMA cipher_hmac_algorithm = HMAC_\(hash)",
            "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_\(hash)",
        ]
    }
}
