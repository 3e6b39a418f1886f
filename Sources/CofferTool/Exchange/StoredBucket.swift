import ArgumentParser
import Coffer
import Foundation

/// A bucket whose types are known only from its file: `Documentation/file-format.md` describes it.
struct StoredBucket: Sendable {
    /// The type of a new bucket's keys.
    enum KeyType: String, ExpressibleByArgument, CaseIterable {
        case text, integer, bytes
    }

    private static let prefix = "bucket:"
    let name: String
    var table: String { Self.prefix + name }

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
        let form = try requireForm { try tx.rows($0) }
        let key = try form.stored(key, name)
        var sql: SQL = "SELECT value FROM \(identifier: table) WHERE key = \(key)"
        form.appendLive(to: &sql)
        return try tx.firstRow(sql)?[0]
    }

    func count(_ tx: borrowing ReadTransaction) throws -> Int {
        let form = try requireForm { try tx.rows($0) }
        var sql: SQL = "SELECT count(*) FROM \(identifier: table) WHERE 1"
        form.appendLive(to: &sql)
        return try tx.firstRow(sql)?.get(0) ?? 0
    }

    /// Puts a value under a key.
    ///
    /// - Parameters:
    ///   - keyType: The keys of the bucket if it does not exist.
    ///   - end: When the entry ends; `nil` for the bucket's lifetime.
    @discardableResult
    func put(
        _ value: Value, _ key: String, making keyType: KeyType, ending end: EntryEnd? = nil,
        _ tx: inout WriteTransaction
    ) throws -> Changed {
        guard let form = try form(ask: { try tx.rows($0) }) else {
            try make(keyType, key, value, tx)
            guard let end else { return Changed(end: nil) }
            return try expire(key, end, &tx) ?? Changed(end: nil)
        }
        let key = try form.stored(key, name)
        try form.requireFitting(value, name)
        guard form.hasExpiry || form.lifetime != nil || end != nil else {
            // Not by REPLACE, which removes other entries that are equal in a unique index.
            if try tx.execute("UPDATE \(identifier: table) SET value = \(value) WHERE key = \(key)")
                == 0
            {
                try requireChange(
                    tx.execute(
                        "INSERT INTO \(identifier: table)(key, value) VALUES (\(key), \(value))"))
            }
            return Changed(end: nil)
        }
        if !form.hasExpiry { try addExpiry { try tx.execute($0) } }
        let time = try end.map { try $0.time(now: BucketForm.now) } ?? form.end()
        let update: SQL = """
            UPDATE \(identifier: table) SET value = \(value), expires = \(time) WHERE key = \(key)
            """
        if try tx.execute(update) == 0 {
            try requireChange(
                tx.execute(
                    """
                    INSERT INTO \(identifier: table)(key, value, expires)
                    VALUES (\(key), \(value), \(time))
                    """))
        }
        return Changed(end: time)
    }

    /// - Throws: `ToolError` `.constraint` if a statement changed nothing.
    func requireChange(_ count: Int) throws {
        guard count > 0 else {
            throw ToolError(.constraint, "nothing was changed: a trigger of the bucket refuses it")
        }
    }

    /// Adds to an integer, and keeps its time of expiry.
    ///
    /// - Returns: The sum.
    /// - Throws: `ToolError` `.badInput` for a value that is no integer, or a sum beyond 64 bits.
    func increment(
        _ key: String, by amount: Int64, _ tx: inout WriteTransaction
    ) throws -> Int64 {
        let form = try requireForm { try tx.rows($0) }
        try form.requireOwnValues(name)
        let stored = try form.stored(key, name)
        var sql: SQL = "SELECT value FROM \(identifier: table) WHERE key = \(stored)"
        form.appendLive(to: &sql)
        guard let old = try tx.firstRow(sql)?[0] else {
            try put(.integer(amount), key, making: .text, &tx)
            return amount
        }
        guard case .integer(let number) = old else {
            throw ToolError(
                .badInput, "the value is not an integer",
                hint: "See it with coffer kv get.")
        }
        let (sum, isTooLarge) = number.addingReportingOverflow(amount)
        guard !isTooLarge else {
            throw ToolError(
                .badInput, "the sum does not fit into 64 bits", hint: "Nothing was changed.")
        }
        try requireChange(
            tx.execute("UPDATE \(identifier: table) SET value = \(sum) WHERE key = \(stored)"))
        return sum
    }

    /// Lets the library create the bucket, so that its table is the same as one created by a
    /// program.
    private func make(
        _ type: KeyType, _ key: String, _ value: Value, _ tx: borrowing WriteTransaction
    ) throws {
        switch try BucketForm(type).stored(key, name) {
        case .integer(let key): try set(value, for: key, tx)
        case .blob(let key): try set(value, for: key, tx)
        case .text(let key): try set(value, for: key, tx)
        case .real, .null: break
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
        let form = try requireForm { try tx.rows($0) }
        let key = try form.stored(key, name)
        var live: SQL = "SELECT 1 FROM \(identifier: table) WHERE key = \(key)"
        form.appendLive(to: &live)
        let wasLive = try tx.firstRow(live) != nil
        let count = try tx.execute("DELETE FROM \(identifier: table) WHERE key = \(key)")
        if wasLive { try requireChange(count) }
        return wasLive
    }

    // MARK: Types

    /// - Throws: `ToolError` `.notFound` if there is no bucket with this name.
    func requireForm(_ ask: (SQL) throws -> [Row]) throws -> BucketForm {
        guard let form = try form(ask: ask) else {
            throw ToolError(
                .notFound, "there is no bucket \(name)",
                hint: "List the buckets with coffer kv list.")
        }
        return form
    }

    private func form(ask: (SQL) throws -> [Row]) throws -> BucketForm? {
        // Byte by byte: SQLite finds a table under a name in another case.
        guard
            try !ask(
                """
                SELECT 1 FROM main.sqlite_master
                WHERE type = 'table' AND rootpage > 0 AND name = \(table)
                """
            ).isEmpty
        else { return nil }
        let columns = try ask("PRAGMA main.table_info(\(identifier: table))")
        let names = columns.map { $0["name"] }
        guard names.starts(with: [.text("key"), .text("value")]),
            names.dropFirst(2).allSatisfy({ $0 == .text("expires") }), let key = columns.first
        else { return nil }
        let hasCatalog = try !ask(
            "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'coffer:buckets'"
        ).isEmpty
        let record =
            hasCatalog
            ? try ask(
                """
                SELECT key_type, codec, lifetime FROM main."coffer:buckets" WHERE name = \(name)
                """
            ).first : nil
        return BucketForm(
            columnType: try key.get("type", as: String.self),
            keyType: try record?.get(0, as: String.self),
            codec: try record?.get(1, as: String.self),
            lifetime: try record?.get(2, as: Int64?.self) ?? nil,
            hasExpiry: columns.contains { $0["name"] == .text("expires") })
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
            line += text(of: key).utf8
            if let value { line += "\t\(VisibleText.of(value, null: ""))".utf8 }
        }
        line.append(10)
        try output.write(line)
    }

    /// A key as it is written on the command line.
    private static func text(of key: Value) -> String {
        guard case .blob(let bytes) = key else { return VisibleText.of(key, null: "") }
        return "hex:" + VisibleText.hexDigits(of: bytes)
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
