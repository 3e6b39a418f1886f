/// What can be read of the schema of a damaged store.
struct SalvagedSchema {
    struct Entry {
        let type: String
        let name: String
        let table: String
        /// 0 without a tree.
        let rootPage: Int
        /// `nil` for an index that a constraint makes.
        let sql: String?
    }

    let encoding: SchemaRow.Encoding
    private(set) var entries: [Entry] = []
    /// Whether no page of the schema is lost.
    let isWhole: Bool
    /// Rows of the schema that cannot be read.
    private(set) var unreadableCount = 0

    init(_ source: SalvageSource, _ walk: TreeWalk) throws(StoreError) {
        let encoding =
            source.header?.integer(at: 56, byteCount: 4).flatMap(SchemaRow.Encoding.init) ?? .utf8
        var entries: [Entry] = []
        var unreadableCount = 0
        let losses = try walk.walk(1, isIndex: false) { (row) throws(StoreError) in
            if let entry = Self.entry(row, encoding) {
                entries.append(entry)
            } else {
                unreadableCount += 1
            }
        }
        self.encoding = encoding
        self.entries = entries
        self.unreadableCount = unreadableCount + losses.cellCount
        isWhole = losses.pages.isEmpty && self.unreadableCount == 0
    }

    /// > "CREATE TABLE sqlite_schema( type text, name text, tbl_name text, rootpage integer,
    /// > sql text );" <https://www.sqlite.org/fileformat2.html#storage_of_the_sql_database_schema>
    private static func entry(_ row: TreeWalk.Row, _ encoding: SchemaRow.Encoding) -> Entry? {
        guard let record = StoredRecord(row.bytes, of: row.byteCount), record.isWhole,
            record.values.count == 5
        else { return nil }
        func text(_ place: Int) -> String? {
            guard case .text(let bytes) = record.values[place] else { return nil }
            let text = encoding.text(bytes)
            // A text that is not exact would name something else.
            return text.unicodeScalars.contains("\u{fffd}") || text.utf8.contains(0) ? nil : text
        }
        var rootPage = 0
        if case .integer(let number) = record.values[3] {
            guard let page = Int(exactly: number), page >= 0 else { return nil }
            rootPage = page
        }
        guard let type = text(0), let name = text(1), let table = text(2) else { return nil }
        let sql = text(4)
        guard sql != nil || record.values[4] == .null else { return nil }
        return Entry(type: type, name: name, table: table, rootPage: rootPage, sql: sql)
    }
}
