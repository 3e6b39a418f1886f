/// A table whose changed rows can be told by key: what its triggers have to know.
struct KeyedTable: Equatable {
    /// The name as the schema has it.
    let name: String
    /// What identifies a row: a name of the row id, or the columns of the primary key; quoted.
    let key: [String]
    /// The columns of each key that no two rows share, with the collation they are compared by.
    /// The row id is not among them.
    let uniqueKeys: [[UniqueColumn]]
    /// Whether it has row ids.
    let hasRowIDs: Bool
    /// Whether there is a unique index of a part of the rows, or on an expression: which row
    /// REPLACE would delete for it cannot be asked beforehand.
    let hasHiddenUniqueKeys: Bool

    struct UniqueColumn: Equatable {
        let column: String
        let collation: String
    }

    /// More columns a key cannot have; so many the logs of changes have.
    static let keyColumnCountMax = 16

    /// The table of this name in the main file; `nil` if there is none.
    ///
    /// - Throws: `.unsupported` for a view, a virtual table, or one whose rows have no key that
    ///   SQL can name.
    init?(_ name: String, _ connection: Connection) throws(StoreError) {
        let found = try connection.firstRow(
            """
            SELECT name, rootpage, type FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(name) COLLATE NOCASE
            """, isReadOnly: true)
        guard let found else { return nil }
        self.name = try found.read("name")
        guard try found.read("rootpage", as: Int?.self) ?? 0 > 0 else {
            throw Self.unsupported("\(name) is a view or a virtual table")
        }
        let pragma = { (verb: String, of: String) throws(StoreError) in
            try connection.rows(
                SQL(text: "PRAGMA main.\(verb)(\(try of.quotedIdentifier()))"), isReadOnly: true)
        }
        var hasRowIDs = true
        var hasHidden = false
        var uniqueKeys: [[UniqueColumn]] = []
        for index in try pragma("index_list", self.name)
        where try index.read("unique", as: Int.self) == 1 {
            let columns = try pragma("index_xinfo", try index.read("name"))
            // Behind the columns of an index comes the row id, if there is one.
            let isPrimaryKey = try index.read("origin", as: String.self) == "pk"
            if isPrimaryKey, !columns.contains(where: { $0["cid"] == .integer(-1) }) {
                hasRowIDs = false
            }
            let terms = columns.filter { $0["key"] == .integer(1) }
            let isPartial = try index.read("partial", as: Int.self) == 1
            guard !isPartial, !terms.contains(where: { $0["name"] == .null }) else {
                hasHidden = true
                continue
            }
            var uniqueKey: [UniqueColumn] = []
            for term in terms {
                uniqueKey.append(
                    UniqueColumn(
                        column: try term.read("name", as: String.self).quotedIdentifier(),
                        collation: try term.read("coll", as: String.self).quotedIdentifier()))
            }
            uniqueKeys.append(uniqueKey)
        }
        self.hasRowIDs = hasRowIDs
        self.uniqueKeys = uniqueKeys
        hasHiddenUniqueKeys = hasHidden
        key = try Self.key(of: self.name, try pragma("table_info", self.name), hasRowIDs)
    }

    private static func key(
        of table: String, _ columns: [Row], _ hasRowIDs: Bool
    ) throws(StoreError) -> [String] {
        var names: Set<String> = []
        var ranked: [(rank: Int, name: String)] = []
        for column in columns {
            let name = try column.read("name", as: String.self)
            let rank = try column.read("pk", as: Int.self)
            names.insert(name.asciiLowercased)
            if rank > 0 { ranked.append((rank, try name.quotedIdentifier())) }
        }
        guard hasRowIDs else {
            guard ranked.count <= keyColumnCountMax else {
                throw unsupported("the primary key has more than \(keyColumnCountMax) columns")
            }
            return ranked.sorted { $0.rank < $1.rank }.map(\.name)
        }
        guard let free = ["rowid", "_rowid_", "oid"].first(where: { !names.contains($0) }) else {
            throw unsupported("\(table) has columns that hide every name of the row id")
        }
        return [free]
    }

    private static func unsupported(_ reason: String) -> StoreError {
        StoreError(
            .unsupported, "the rows that change cannot be told: \(reason)",
            hint: "Observe a value that is read from it instead.")
    }
}
