import CSQLCipher

/// The table for rows that have no other place: of an unknown table, cut short, or refused.
///
/// Columns: `reason`, `table_name` (NULL if unknown), `root_page`, `page`, `row_id`,
/// `field_count`, and the values as `c0`, `c1` and so on. It is made with its first row.
final class LostAndFound {
    private let handle: Handle
    private let encoding: SchemaRow.Encoding
    /// `nil` before the first row.
    private(set) var name: String?
    private(set) var rowCount = 0
    private var columnCount = 0
    private var inserts: [Int: CopyStatement] = [:]

    init(_ handle: Handle, _ encoding: SchemaRow.Encoding) {
        self.handle = handle
        self.encoding = encoding
    }

    struct Origin {
        let reason: String
        /// The table, if it is known.
        let table: String?
        let rootPage: Int
    }

    /// Keeps a row.
    ///
    /// - Throws: `.full`, `.io`; `.unsupported` for more values than a table has columns.
    func insert(
        _ row: TreeWalk.Row, _ record: StoredRecord, _ origin: Origin
    ) throws(StoreError) {
        try ensureColumns(record.values.count)
        // At most as many as the older engine binds in one statement.
        let first = min(record.values.count, Self.valueCountAtOnce)
        let insert = try statement(inserting: first)
        try insert.bind(origin.reason, at: 1)
        try insert.bind(origin.table, at: 2)
        for (index, number) in [
            Int64(origin.rootPage), Int64(row.page), row.rowID, Int64(record.fieldCount),
        ].enumerated() {
            try insert.bind(.integer(number), at: Int32(3 + index), encoding)
        }
        for (index, value) in record.values.prefix(first).enumerated() {
            try insert.bind(value, at: Int32(Self.fixedCount + 1 + index), encoding)
        }
        try insert.run()
        rowCount += 1
        for place in stride(from: first, to: record.values.count, by: 1) {
            let update = try CopyStatement(
                handle,
                "UPDATE \(name ?? "") SET c\(place) = ? WHERE rowid = last_insert_rowid()")
            try update.bind(record.values[place], at: 1, encoding)
            try update.run()
        }
    }

    private static let fixedCount = 6
    private static let valueCountAtOnce = 900

    private func ensureColumns(_ count: Int) throws(StoreError) {
        if name == nil {
            let free = try freeName()
            try CopyStatement(
                handle,
                "CREATE TABLE \(free)(reason TEXT, table_name TEXT, root_page INTEGER, "
                    + "page INTEGER, row_id INTEGER, field_count INTEGER)"
            ).run()
            name = free
        }
        guard count > columnCount else { return }
        inserts = [:]
        for place in columnCount..<count {
            try CopyStatement(handle, "ALTER TABLE \(name ?? "") ADD COLUMN c\(place)").run()
        }
        columnCount = count
    }

    private func freeName() throws(StoreError) -> String {
        var name = "lost_and_found"
        var number = 1
        while try handle.firstInteger(
            "SELECT count(*) FROM sqlite_master WHERE lower(name) = '\(name)'") > 0
        {
            number += 1
            name = "lost_and_found_\(number)"
        }
        return name
    }

    private func statement(inserting count: Int) throws(StoreError) -> CopyStatement {
        if let known = inserts[count] { return known }
        let fixed = ["reason", "table_name", "root_page", "page", "row_id", "field_count"]
        let names = fixed + (0..<count).map { "c\($0)" }
        let values = names.map { _ in "?" }.joined(separator: ", ")
        let made = try CopyStatement(
            handle,
            "INSERT INTO \(name ?? "")(\(names.joined(separator: ", "))) VALUES (\(values))")
        inserts[count] = made
        return made
    }
}
