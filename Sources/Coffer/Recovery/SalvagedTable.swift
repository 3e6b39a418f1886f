import CSQLCipher

/// A table of the new store, which takes rows as the damaged store's pages hold them.
///
/// Every row is read back after it was inserted. So a value that the column's type would change is
/// noticed, and the row is refused.
final class SalvagedTable {
    private struct Column {
        let name: String
        /// Whether it can be inserted: not generated.
        let isWritable: Bool
    }

    private struct Insert {
        let statement: CopyStatement
        /// The places of the values that are bound; generated columns are not.
        let places: [Int]
    }

    let name: String
    private let handle: Handle
    private let encoding: SchemaRow.Encoding
    /// In the order of the records.
    private var columns: [Column] = []
    /// The column that is the row id; `nil` if there is none.
    private var rowIDColumn: Int?
    /// The name that sets the row id; `nil` if a column does, or without row ids.
    private var rowIDName: String?
    /// The columns of the primary key in a table WITHOUT ROWID, by their place in the record, with
    /// the collations in which the key is unique. Those of the columns may differ, and would find
    /// other rows as well.
    private var keyColumns: [(place: Int, collation: String)] = []
    private(set) var hasRowIDs = true
    /// By the number of fields in the record. A record may be shorter than the table: columns that
    /// were added later have their default value.
    private var inserts: [Int: Insert] = [:]
    private var selects: [Int: CopyStatement] = [:]

    /// - Throws: `.sql` if the table does not exist or its definition does not compile.
    init(
        _ name: String, _ handle: Handle, _ encoding: SchemaRow.Encoding
    ) throws(StoreError) {
        self.name = name
        self.handle = handle
        self.encoding = encoding
        try readColumns()
    }

    // MARK: Columns

    private func readColumns() throws(StoreError) {
        var all: [Int: Column] = [:]
        var keys: [(place: Int, isInteger: Bool)] = []
        // SQLite 3.15 has no table_xinfo and returns no row; it has no generated columns either.
        for pragma in ["table_xinfo", "table_info"] where all.isEmpty {
            let rows = try CopyStatement(handle, "PRAGMA \(pragma)(\(name.inDoubleQuotes))")
            while try rows.step() {
                let hidden = pragma == "table_info" ? 0 : rows.integer(6)
                let place = rows.integer(0)
                let column = Column(name: try rows.text(1) ?? "", isWritable: hidden == 0)
                all[place] = column
                // 2: a generated column that is not stored.
                if hidden != 2 { columns.append(column) }
                if rows.integer(5) > 0 {
                    let type = try rows.text(2) ?? ""
                    keys.append((columns.count - 1, type.uppercased() == "INTEGER"))
                }
            }
        }
        guard !columns.isEmpty else {
            throw StoreError(.sql, "the definition of \(name) makes no table")
        }
        guard let free = RowIDName.free(beside: Set(all.values.map { $0.name.lowercased() }))
        else {
            throw StoreError(.sql, "\(name) has columns named rowid, _rowid_ and oid")
        }
        // The name is not quoted, because SQLite might read a quoted one as a text.
        hasRowIDs = try CopyStatement.compiles(
            handle, "SELECT \(free) FROM \(name.inDoubleQuotes) NOT INDEXED")
        let keyIndex = try primaryKeyIndex()
        if !hasRowIDs, let keyIndex {
            try orderByKey(all, keyIndex)
        } else if keyIndex == nil, keys.count == 1, keys[0].isInteger {
            rowIDColumn = keys[0].place
        } else if hasRowIDs {
            rowIDName = free
        }
    }

    private func primaryKeyIndex() throws(StoreError) -> String? {
        let indexes = try CopyStatement(handle, "PRAGMA index_list(\(name.inDoubleQuotes))")
        while try indexes.step() {
            if try indexes.text(3) == "pk" { return try indexes.text(1) }
        }
        return nil
    }

    /// The records of a table WITHOUT ROWID begin with the primary key.
    private func orderByKey(_ all: [Int: Column], _ index: String) throws(StoreError) {
        columns = []
        let rows = try CopyStatement(handle, "PRAGMA index_xinfo(\(index.inDoubleQuotes))")
        while try rows.step() {
            guard let column = all[rows.integer(1)] else { continue }
            if rows.integer(5) == 1 {
                keyColumns.append((columns.count, try rows.text(4) ?? "BINARY"))
            }
            columns.append(column)
        }
    }

    // MARK: Rows

    /// Inserts a row, and reads it back.
    ///
    /// - Returns: `nil` if the table has the row now; otherwise the reason why it does not.
    /// - Throws: Errors that are not about this row, such as `.full`.
    func insert(_ record: StoredRecord, rowID: Int64) throws(StoreError) -> String? {
        guard record.fieldCount <= columns.count else {
            return "it has \(record.fieldCount) values, and the table \(columns.count) columns"
        }
        var values = record.values
        if let rowIDColumn, rowIDColumn < values.count { values[rowIDColumn] = .integer(rowID) }
        do throws(StoreError) {
            let insert = try insert(of: values.count)
            var index: Int32 = 1
            if rowIDName != nil {
                try insert.statement.bind(.integer(rowID), at: index, encoding)
                index += 1
            }
            for place in insert.places {
                try insert.statement.bind(values[place], at: index, encoding)
                index += 1
            }
            try insert.statement.run()
        } catch  where error.code == .constraint || error.code == .sql {
            return error.message
        }
        guard try !isStored(values, rowID) else { return nil }
        try remove(values, rowID)
        return "the type of a column would change a value"
    }

    private func insert(of count: Int) throws(StoreError) -> Insert {
        if let known = inserts[count] { return known }
        let places = columns.indices.prefix(count).filter { columns[$0].isWritable }
        let names =
            (rowIDName.map { [$0] } ?? []) + places.map { columns[$0].name.inDoubleQuotes }
        let marks = names.map { _ in "?" }.joined(separator: ", ")
        let values =
            names.isEmpty
            ? "DEFAULT VALUES" : "(\(names.joined(separator: ", "))) VALUES (\(marks))"
        let made = Insert(
            statement: try CopyStatement(
                handle, "INSERT OR ABORT INTO \(name.inDoubleQuotes) \(values)"),
            places: places)
        inserts[count] = made
        return made
    }

    private func isStored(_ values: [StoredValue], _ rowID: Int64) throws(StoreError) -> Bool {
        let select: CopyStatement
        if let known = selects[values.count] {
            select = known
        } else {
            let names = columns.prefix(values.count).map(\.name.inDoubleQuotes)
            select = try CopyStatement(
                handle,
                "SELECT \(names.isEmpty ? "1" : names.joined(separator: ", ")) "
                    + "FROM \(name.inDoubleQuotes) NOT INDEXED WHERE \(identity)")
            selects[values.count] = select
        }
        defer { sqlite3_reset(select.raw) }
        try bindIdentity(of: values, rowID, to: select)
        guard try select.step() else { return false }
        for (place, value) in values.enumerated() {
            guard select.holds(value, at: Int32(place)) else { return false }
        }
        return true
    }

    private func remove(_ values: [StoredValue], _ rowID: Int64) throws(StoreError) {
        let delete = try CopyStatement(
            handle, "DELETE FROM \(name.inDoubleQuotes) WHERE \(identity)")
        try bindIdentity(of: values, rowID, to: delete)
        try delete.run()
    }

    /// The condition that finds one row.
    private var identity: String {
        if let rowID = rowIDName ?? rowIDColumn.map({ columns[$0].name.inDoubleQuotes }) {
            return "\(rowID) = ?"
        }
        return keyColumns.map { key in
            let name = columns[key.place].name.inDoubleQuotes
            return "\(name) COLLATE \(key.collation.inDoubleQuotes) IS ?"
        }.joined(separator: " AND ")
    }

    private func bindIdentity(
        of values: [StoredValue], _ rowID: Int64, to statement: CopyStatement
    ) throws(StoreError) {
        guard !hasRowIDs else {
            return try statement.bind(.integer(rowID), at: 1, encoding)
        }
        for (index, key) in keyColumns.enumerated() where key.place < values.count {
            try statement.bind(values[key.place], at: Int32(index + 1), encoding)
        }
    }
}

extension CopyStatement {
    /// Binds a stored value as it is.
    func bind(
        _ value: StoredValue, at index: Int32, _ encoding: SchemaRow.Encoding
    ) throws(StoreError) {
        let code =
            switch value {
            case .null: sqlite3_bind_null(raw, index)
            case .integer(let number): sqlite3_bind_int64(raw, index, number)
            case .real(let number): sqlite3_bind_double(raw, index, number)
            case .blob(let bytes) where bytes.isEmpty: sqlite3_bind_zeroblob(raw, index, 0)
            case .blob(let bytes):
                bytes.withUnsafeBytes {
                    sqlite3_bind_blob64(
                        raw, index, $0.baseAddress, UInt64($0.count), coffer_transient())
                }
            case .text(let bytes) where bytes.isEmpty:
                sqlite3_bind_text(raw, index, "", 0, coffer_transient())
            case .text(let bytes):
                bytes.withUnsafeBytes {
                    sqlite3_bind_text64(
                        raw, index, $0.bindMemory(to: CChar.self).baseAddress, UInt64($0.count),
                        coffer_transient(), encoding.engineCode)
                }
            }
        guard code == SQLITE_OK else { throw StoreError.of(nil, code: code, sql: nil) }
    }

    /// Whether a column of the current row has this value. An integer in a column of reals is
    /// stored as an integer, and read as a real.
    func holds(_ value: StoredValue, at column: Int32) -> Bool {
        switch (value, sqlite3_column_type(raw, column)) {
        case (.null, SQLITE_NULL): true
        case (.integer(let number), SQLITE_INTEGER): sqlite3_column_int64(raw, column) == number
        case (.integer(let number), SQLITE_FLOAT):
            Int64(exactly: sqlite3_column_double(raw, column)) == number
        case (.real(let number), SQLITE_FLOAT):
            sqlite3_column_double(raw, column).bitPattern == number.bitPattern
        case (.blob(let bytes), SQLITE_BLOB), (.text(let bytes), SQLITE_TEXT):
            // Without a conversion: a text in the encoding of the database.
            bytes.elementsEqual(
                UnsafeRawBufferPointer(
                    start: sqlite3_column_blob(raw, column),
                    count: Int(sqlite3_column_bytes(raw, column))))
        default: false
        }
    }
}

extension SchemaRow.Encoding {
    /// The encoding's number in the engine's interface.
    fileprivate var engineCode: UInt8 {
        switch self {
        case .utf8: UInt8(SQLITE_UTF8)
        case .utf16LittleEndian: UInt8(SQLITE_UTF16LE)
        case .utf16BigEndian: UInt8(SQLITE_UTF16BE)
        }
    }

    /// The name in `PRAGMA encoding`.
    var pragmaName: String {
        switch self {
        case .utf8: "UTF-8"
        case .utf16LittleEndian: "UTF-16le"
        case .utf16BigEndian: "UTF-16be"
        }
    }
}
