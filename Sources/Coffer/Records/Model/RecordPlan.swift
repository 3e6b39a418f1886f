import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Coffer's description of a record type: its columns, and the SQL for them. Made once per type.
///
/// Parameters are numbered by column, so that one way of binding serves INSERT and UPDATE. Column
/// names must be qualified by the table, because SQLite takes an unknown `"name"` for a text.
/// See <https://www.sqlite.org/quirks.html#dblquote>.
final class RecordPlan: NamedTable {
    let typeName: String
    let table: String
    let columns: [RecordColumn]
    /// Positions of the key's columns, in the order of `static var key`.
    let keyPositions: [Int]
    /// Whether a column holds dates. Then the file has to say from when they count.
    let hasDates: Bool
    /// Whether the key is one column, of dates.
    let hasDateKey: Bool
    /// Whether a column is that of a `Lazy` property.
    let hasLazy: Bool
    /// Whether the table is declared WITHOUT ROWID.
    let isWithoutRowID: Bool
    let quotedTable: String
    /// `"table"."column"`, in the order of the columns.
    let qualifiedColumns: [String]
    /// `"column"`, in the order of the columns.
    let quotedColumns: [String]
    /// The layout that resolves key paths; made when it is first needed.
    let layout = Mutex<RecordLayout?>(nil)
    let jsonPlaces = JSONPlaces()
    /// Resolves the type's declarations about its table.
    let declare: @Sendable (RecordPlan) throws(StoreError) -> TableDeclaration
    let knownDeclaration = Mutex<TableDeclaration?>(nil)

    /// Means "`id`, if there is such a column". It is not a usable column name.
    static let defaultKey = ["\u{0}id"]

    init(
        typeName: String, table: String, columns: [RecordColumn], key: [String],
        isWithoutRowID: Bool,
        declare: @escaping @Sendable (RecordPlan) throws(StoreError) -> TableDeclaration
    ) throws(StoreError) {
        self.typeName = typeName
        self.table = table
        self.columns = columns
        hasDates = columns.contains { $0.kind == .date || $0.type == Date.self }
        self.isWithoutRowID = isWithoutRowID
        self.declare = declare
        let key = key == Self.defaultKey ? Self.defaultKey(of: columns) : key
        keyPositions = try Self.positions(of: key, in: columns, typeName)
        hasLazy = columns.contains(where: \.isLazy)
        try Self.requireKey(isLoaded: keyPositions.map { columns[$0] }, typeName)
        hasDateKey = keyPositions.count == 1 && columns[keyPositions[0]].kind == .date
        quotedTable = try Self.quoted(table, typeName)
        var quotedColumns: [String] = []
        for column in columns { quotedColumns.append(try Self.quoted(column.name, typeName)) }
        try Self.requireDistinct(columns, typeName)
        self.quotedColumns = quotedColumns
        let quotedTable = quotedTable
        qualifiedColumns = quotedColumns.map { "\(quotedTable).\($0)" }
        if isWithoutRowID { try requireKeyOfOwn() }
    }

    private static func defaultKey(of columns: [RecordColumn]) -> [String] {
        columns.contains { $0.name == "id" } ? ["id"] : []
    }

    private static func positions(
        of key: [String], in columns: [RecordColumn], _ typeName: String
    ) throws(StoreError) -> [Int] {
        var positions: [Int] = []
        for name in key {
            guard let position = columns.firstIndex(where: { $0.name == name }) else {
                throw StoreError(
                    .misuse, "the key of \(typeName) names \(name), which is not a column",
                    hint: "static var key holds the names of columns: coding keys.", column: name)
            }
            guard !positions.contains(position) else {
                throw StoreError(
                    .misuse, "the key of \(typeName) names \(name) twice",
                    hint: "static var key holds each name once.", column: name)
            }
            positions.append(position)
        }
        return positions
    }

    private static func quoted(_ name: String, _ typeName: String) throws(StoreError) -> String {
        do throws(StoreError) {
            return try name.quotedIdentifier()
        } catch {
            throw StoreError(
                .misuse, "a table or column of \(typeName) has no usable name: \(error.message)")
        }
    }

    /// SQLite compares column names without regard to case.
    private static func requireDistinct(
        _ columns: [RecordColumn], _ typeName: String
    ) throws(StoreError) {
        var seen: Set<String> = []
        for column in columns where !seen.insert(column.name.asciiLowercased).inserted {
            throw StoreError(
                .misuse,
                "\(typeName) has two columns whose names differ from \(column.name) only in case",
                hint: "Give one of them another name in CodingKeys.", column: column.name)
        }
    }
}

extension RecordPlan {
    /// The plan of a type, from the process-wide cache.
    static func of<R: Record>(_ type: R.Type) throws(StoreError) -> RecordPlan {
        if let plan = plans.withLock({ $0[ObjectIdentifier(type)] }) { return plan }
        // Made outside the lock, because this runs the type's own code.
        let plan = try RecordPlan(
            typeName: String(describing: type), table: R.table,
            columns: try generate(encode(Reflection.columns(of: type), as: type), as: type),
            key: R.key, isWithoutRowID: R.isWithoutRowID
        ) { plan throws(StoreError) in try TableDeclaration(R.self, plan) }
        return plans.withLock { plans in
            if let first = plans[ObjectIdentifier(type)] { return first }
            plans[ObjectIdentifier(type)] = plan
            return plan
        }
    }

    /// A plan that resolves the key paths of declarations about columns.
    static func plain<R: Record>(
        _ columns: [RecordColumn], of type: R.Type
    ) throws(StoreError) -> RecordPlan {
        try RecordPlan(
            typeName: String(describing: type), table: R.table, columns: columns, key: R.key,
            isWithoutRowID: R.isWithoutRowID
        ) { plan throws(StoreError) in try TableDeclaration(type, plan) }
    }

    private static let plans = Mutex<[ObjectIdentifier: RecordPlan]>([:])

    // MARK: SQL

    /// - Parameter orFail: Whether a failure keeps what came before it, which must be nothing.
    func insertSQL(orFail: Bool) -> String {
        let written = columns.indices.filter { columns[$0].generated == nil }
        let parameters = written.map { "?\($0 + 1)" }.joined(separator: ", ")
        let names = written.map { quotedColumns[$0] }.joined(separator: ", ")
        let start = "INSERT \(orFail ? "OR FAIL " : "")INTO \(quotedTable) (\(names)) "
        guard written.last != columns.count - 1 else { return "\(start)VALUES (\(parameters))" }
        // The text has to name the last parameter, which is that of a computed column.
        return "\(start)SELECT \(parameters) WHERE coalesce(1, ?\(columns.count))"
    }

    /// Sets every column outside the key. For a record that is all key it sets the key to itself,
    /// so that the statement still shows whether the row exists.
    func updateSQL(orFail: Bool, keeping kept: Set<Int> = []) -> String {
        let kept = kept.union(generatedPositions)
        let others = columns.indices.filter { !keyPositions.contains($0) && !kept.contains($0) }
        return updateSQL(
            setting: others.isEmpty ? keyPositions : others, where: keyPositions, orFail: orFail)
    }

    /// Takes the parameters of a whole record, or of its key only.
    ///
    /// SQLite refuses to bind a parameter beyond the last one in the text. So the text names the
    /// last column's parameter inside a `coalesce` that never evaluates it.
    var deleteSQL: String {
        "DELETE FROM \(quotedTable) WHERE \(keyCondition) AND coalesce(1, ?\(columns.count))"
    }

    /// Takes values of the key, which must be one column. SQLite compares each as a single one:
    /// <https://www.sqlite.org/lang_expr.html#the_in_and_not_in_operators>.
    func deleteManySQL(_ keyCount: Int) -> String {
        let parameters = repeatElement("?", count: keyCount).joined(separator: ", ")
        return "DELETE FROM \(quotedTable) WHERE \(qualifiedColumns[keyPositions[0]]) "
            + "IN (\(parameters))"
    }

    /// Whether a row exists. Takes the same parameters as `deleteSQL`.
    var existsSQL: String { selectSQL(["1"]) }

    /// Reads columns of the row with a key. Takes the same parameters as `deleteSQL`.
    func selectSQL(_ selected: [String]) -> String {
        "SELECT \(selected.joined(separator: ", ")) FROM \(quotedTable) "
            + "WHERE \(keyCondition) AND coalesce(1, ?\(columns.count))"
    }

    /// Takes the values of the key.
    var findSQL: String { "\(selectSQL) WHERE \(keyCondition)" }

    var selectSQL: String {
        "SELECT \(selectedColumns.joined(separator: ", ")) FROM \(quotedTable)"
    }

    /// One column of a record's row.
    func loadSQL(_ position: Int) -> String {
        "SELECT \(qualifiedColumns[position]) FROM \(quotedTable) WHERE \(keyCondition) "
            + "AND coalesce(1, ?\(columns.count))"
    }

    /// Passes columns to `RowCollector`: those of the SQL `columns`, or all.
    func collectSQL(_ columns: String? = nil) -> String {
        let columns = columns ?? qualifiedColumns.joined(separator: ", ")
        return "SELECT \(RowCollector.functionName)(\(columns)) FROM \(quotedTable)"
    }

    /// Takes the ticket of a `KeyTable`, and returns the rows of its keys in their order.
    var joinedSQL: String {
        "SELECT \(selectedColumns.joined(separator: ", ")) \(joinedRows)"
    }

    /// The same for `RowCollector`.
    var collectJoinedSQL: String {
        let columns = qualifiedColumns.joined(separator: ", ")
        return "SELECT \(RowCollector.functionName)(\(columns)) \(joinedRows)"
    }

    private var joinedRows: String {
        // The sign takes the key's affinity away, so that it is compared as an argument would be:
        // see https://www.sqlite.org/datatype3.html#affinity_of_expressions.
        let key = qualifiedColumns[keyPositions[0]]
        return "FROM \(KeyTable.qualifiedName)(?1) CROSS JOIN \(quotedTable) "
            + "ON \(key) = +\(KeyTable.name).value"
    }

    private var keyCondition: String {
        keyPositions.map { "\(qualifiedColumns[$0]) = ?\($0 + 1)" }.joined(separator: " AND ")
    }

    // MARK: Keys

    func requireKey(for verb: String) throws(StoreError) {
        guard keyPositions.isEmpty else { return }
        throw StoreError(
            .misuse, "\(verb) needs a key, and \(typeName) has none",
            hint: "Declare static var key: [String], the names of the key's columns.", table: table)
    }

    /// The position of the key's only column.
    func singleKey(for verb: String) throws(StoreError) -> Int {
        try requireKey(for: verb)
        guard keyPositions.count == 1 else {
            throw StoreError(
                .misuse,
                "\(verb) takes a key of one column; static var key of \(typeName) "
                    + "names \(keyPositions.count)",
                hint: "Use a query: \(typeName).where(…).", table: table)
        }
        return keyPositions[0]
    }
}

extension String {
    /// Lower case as SQLite defines it: A to Z only.
    var asciiLowercased: String {
        String(decoding: utf8.map { 0x41...0x5a ~= $0 ? $0 + 0x20 : $0 }, as: UTF8.self)
    }
}
