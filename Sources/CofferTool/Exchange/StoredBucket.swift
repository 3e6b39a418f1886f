import ArgumentParser
import Coffer
import Foundation

/// A bucket whose types are known only from its table.
///
/// The table is the one that `Bucket` creates: `bucket:` and the name, with `key` and `value`.
struct StoredBucket: Sendable {
    /// The type of a bucket's keys.
    enum KeyType: String, ExpressibleByArgument, CaseIterable {
        case text, integer, bytes
    }

    private static let prefix = "bucket:"
    private let name: String
    private var table: String { Self.prefix + name }

    init(_ name: String) {
        self.name = name
    }

    static func names(_ connection: Connection) throws -> [String] {
        try connection.rows(
            """
            SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'bucket:*' ORDER BY 1
            """
        ).map { String(try $0.get(0, as: String.self).dropFirst(prefix.count)) }
    }

    // MARK: Entries

    func get(_ key: String, _ tx: borrowing ReadTransaction) throws -> Value? {
        let type = try requireKeyType { try tx.rows($0) }
        let key = try value(of: key, type)
        return try tx.firstRow("SELECT value FROM \(identifier: table) WHERE key = \(key)")?[0]
    }

    func count(_ tx: borrowing ReadTransaction) throws -> Int {
        _ = try requireKeyType { try tx.rows($0) }
        return try tx.firstRow("SELECT count(*) FROM \(identifier: table)")?.get(0) ?? 0
    }

    func put(
        _ value: Value, _ key: String, making keyType: KeyType, _ tx: inout WriteTransaction
    ) throws {
        guard let type = try self.keyType(ask: { try tx.rows($0) }) else {
            return try make(keyType, key, value, tx)
        }
        let key = try self.value(of: key, type)
        try tx.execute(
            "INSERT OR REPLACE INTO \(identifier: table)(key, value) VALUES (\(key), \(value))")
    }

    /// Lets the library create the bucket, so that its table is the same as one created by a
    /// program.
    private func make(
        _ type: KeyType, _ key: String, _ value: Value, _ tx: borrowing WriteTransaction
    ) throws {
        switch try self.value(of: key, type) {
        case .integer(let key): try set(value, for: key, tx)
        case .blob(let key): try set(value, for: key, tx)
        default: try set(value, for: key, tx)
        }
    }

    private func set<K: BucketKey>(
        _ value: Value, for key: K, _ tx: borrowing WriteTransaction
    ) throws {
        switch value {
        case .null: break
        case .integer(let value): try tx.set(value, for: key, in: Bucket<K, Int64>(name))
        case .real(let value): try tx.set(value, for: key, in: Bucket<K, Double>(name))
        case .text(let value): try tx.set(value, for: key, in: Bucket<K, String>(name))
        case .blob(let value): try tx.set(value, for: key, in: Bucket<K, Data>(name))
        }
    }

    func delete(_ key: String, _ tx: inout WriteTransaction) throws -> Bool {
        let type = try requireKeyType { try tx.rows($0) }
        let key = try value(of: key, type)
        return try tx.execute("DELETE FROM \(identifier: table) WHERE key = \(key)") > 0
    }

    /// Passes the entries to `body` one by one, in the order of the keys.
    func entries(
        _ connection: Connection, prefix: String?, limit: Int?,
        _ body: (Value, Value) throws -> Void
    ) throws {
        try connection.transaction(.deferred) {
            let type = try requireKeyType { try connection.rows($0) }
            guard prefix == nil || type == .text else {
                throw ToolError(.usage, "--prefix is for text keys; these are \(type.rawValue)")
            }
            var sql: SQL = "SELECT key, value FROM \(identifier: table)"
            if let prefix { sql.append(" WHERE key >= \(prefix)") }
            sql.append(" ORDER BY key LIMIT \(limit ?? .max)")
            let statement = try connection.prepare(sql.text)
            try statement.bind(sql.arguments)
            while try statement.step() {
                let key = try statement.value(at: 0)
                if let prefix, case .text(let text) = key, !text.utf8.starts(with: prefix.utf8) {
                    return try statement.reset()
                }
                try body(key, try statement.value(at: 1))
            }
        }
    }

    // MARK: Keys

    /// - Throws: `ToolError` `.notFound` if there is no bucket with this name.
    private func requireKeyType(_ ask: (SQL) throws -> [Row]) throws -> KeyType {
        guard let type = try keyType(ask: ask) else {
            throw ToolError(
                .notFound, "there is no bucket \(name)",
                hint: "List the buckets with coffer kv list.")
        }
        return type
    }

    private func keyType(ask: (SQL) throws -> [Row]) throws -> KeyType? {
        let columns = try ask("PRAGMA table_info(\(identifier: table))")
        guard let key = columns.first(where: { $0["name"] == .text("key") }) else { return nil }
        switch try key.get("type", as: String.self) {
        case "INTEGER": return .integer
        case "BLOB": return .bytes
        default: return .text
        }
    }

    private func value(of key: String, _ type: KeyType) throws -> Value {
        switch type {
        case .text: return .text(key)
        case .integer:
            guard let number = Int64(key) else {
                throw ToolError(.usage, "the keys of \(name) are integers")
            }
            return .integer(number)
        case .bytes:
            if let id = UUID(uuidString: key) { return id.asValue() }
            guard key.hasPrefix("hex:"),
                case .blob(let bytes) = try BoundValue.parse(key, apartFrom: "")
            else {
                throw ToolError(
                    .usage, "the keys of \(name) are bytes",
                    hint: "Write a UUID, or bytes as hex:00ff.")
            }
            return .blob(bytes)
        }
    }
}

/// Writes the entries of a bucket as lines.
enum EntryWriter {
    /// Writes key, tab and value on one line, or one JSON object.
    static func write(
        _ key: Value, _ value: Value?, isJSON: Bool = true, member: String = "key",
        _ output: inout StandardOutput
    ) throws {
        var line: [UInt8] = []
        if isJSON {
            line += "{\"\(member)\":".utf8
            JSONValue.append(key, to: &line)
            if let value {
                line += ",\"value\":".utf8
                JSONValue.append(value, to: &line)
            }
            line += "}".utf8
        } else {
            line += VisibleText.of(key, null: "").utf8
            if let value { line += "\t\(VisibleText.of(value, null: ""))".utf8 }
        }
        line.append(10)
        try output.write(line)
    }

    /// The bytes of a value for a program that reads only this value.
    static func bytes(of value: Value) -> [UInt8] {
        switch value {
        case .text(let text): Array(text.utf8)
        case .blob(let data): Array(data)
        default: Array(VisibleText.of(value, null: "").utf8)
        }
    }
}
