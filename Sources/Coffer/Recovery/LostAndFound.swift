import CSQLCipher

/// The table for rows that have no other place: of an unknown table, cut short, or refused.
///
/// Columns: `reason`, `table_name` (NULL if unknown), `root_page`, `page`, `row_id`,
/// `field_count`, and the values as `c0`, `c1` and so on. It is made with its first row. A row of
/// more values than one statement binds goes on in the next row of this table.
final class LostAndFound {
    private let handle: Handle
    private let encoding: SchemaRow.Encoding
    /// Whether the encoding of texts is only assumed, because page 1 is lost.
    private let isEncodingAssumed: Bool
    /// Texts that are not in the assumed encoding. They are BLOBs here.
    private(set) var foreignTextCount = 0
    /// `nil` before the first row.
    private(set) var name: String?
    private(set) var rowCount = 0
    private var columnCount = 0
    private var inserts: [Int: CopyStatement] = [:]

    init(_ handle: Handle, _ encoding: SchemaRow.Encoding, isAssumed: Bool) {
        self.handle = handle
        self.encoding = encoding
        isEncodingAssumed = isAssumed
    }

    struct Origin {
        let reason: String
        /// The table, if it is known.
        let table: String?
        let rootPage: Int
    }

    /// Keeps a row.
    ///
    /// - Throws: Errors that are not about this row, such as `.full`.
    func insert(
        _ row: TreeWalk.Row, _ record: StoredRecord, _ origin: Origin
    ) throws(StoreError) {
        var first = 0
        repeat {
            let values = record.values.dropFirst(first).prefix(Self.maximumValueCount)
            try ensureColumns(values.count)
            let insert = try statement(inserting: values.count)
            let reason = first == 0 ? origin.reason : "the row before, from value \(first) on"
            try insert.bind(reason, at: 1)
            try insert.bind(origin.table, at: 2)
            for (index, number) in [
                Int64(origin.rootPage), Int64(row.page), row.rowID, Int64(record.fieldCount),
            ].enumerated() {
                try insert.bind(.integer(number), at: Int32(3 + index), encoding)
            }
            for (index, value) in values.enumerated() {
                let place = Int32(Self.fixedCount + 1 + index)
                try insert.bind(kept(value), at: place, encoding)
            }
            try insert.run()
            rowCount += 1
            first += values.count
        } while first < record.values.count
    }

    /// A text that is not in the assumed encoding stays as it is only as a BLOB.
    private func kept(_ value: StoredValue) -> StoredValue {
        guard isEncodingAssumed, case .text(let bytes) = value else { return value }
        let isText = bytes.withUnsafeBufferPointer { String(exactly: $0) != nil }
        // UTF-16 of Latin letters is UTF-8 as well, with a NUL after each letter.
        if isText, !bytes.contains(0) { return value }
        foreignTextCount += 1
        return .blob(bytes)
    }

    private static let fixedCount = 6
    /// At most as many as the older engine binds in one statement, which has six more.
    private static let maximumValueCount = 900

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
