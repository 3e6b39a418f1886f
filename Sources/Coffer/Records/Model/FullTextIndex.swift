/// An index of the words in texts of a record's table.
///
/// ```swift
/// static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.body) }
///
/// let found = try tx.fetch(Note.where(.matching("swift sqlcipher")))
/// ```
///
/// `create` makes it as a table of SQLite's FTS4 with a copy of the texts, and triggers that follow
/// every change of a row, by any program. It costs the size of the texts once more, and of the
/// index. Both are encrypted as all pages are. See <https://www.sqlite.org/fts3.html>.
///
/// The record's key must be one integer, the row id.
public struct FullTextIndex<R: Record>: Sendable {
    let paths: [PartialKeyPath<R> & Sendable]
    let tokenizer: FullTextTokenizer
    let prefixLengths: [Int]
    let name: String?

    /// Describes an index of words.
    ///
    /// - Parameters:
    ///   - paths: Properties that are texts; at least one.
    ///   - tokenizer: Divides texts into words.
    ///   - prefixLengths: Lengths of prefixes, in characters, that get an index of their own. They
    ///     make a search by a prefix of that length faster, and the index larger.
    ///   - name: The name of its table, which SQL of your own uses. `nil` for the name of the
    ///     record's table and `_text`.
    public init(
        _ paths: (PartialKeyPath<R> & Sendable)..., tokenizer: FullTextTokenizer = .unicode,
        prefixLengths: [Int] = [], name: String? = nil
    ) {
        (self.paths, self.tokenizer) = (paths, tokenizer)
        (self.prefixLengths, self.name) = (prefixLengths, name)
    }
}

/// A way to divide texts into words.
public struct FullTextTokenizer: Sendable, Hashable {
    /// The argument `tokenize=` of the table.
    let argument: String
    /// Whether it takes letters, digits and nothing else for parts of words.
    let isAlphanumeric: Bool

    /// Words of letters and digits of all scripts. Case does not count, nor do accents.
    public static let unicode = FullTextTokenizer(argument: "unicode61", isAlphanumeric: true)

    /// English words by their stems: `running` finds `run`.
    public static let englishStems = FullTextTokenizer(argument: "porter", isAlphanumeric: false)

    /// A tokenizer of your own.
    ///
    /// - Parameter name: The name under which `Connection.register(tokenizer:named:)` knows it. A
    ///   program that changes the rows must have registered it, other programs too.
    public static func registered(_ name: String) -> FullTextTokenizer {
        let quoted = name.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: "''")
        return FullTextTokenizer(argument: "coffer '\(quoted)'", isAlphanumeric: false)
    }
}

/// The full-text index of a record type, with its columns.
struct ResolvedFullText: Sendable {
    let plan: RecordPlan
    /// Its columns in the plan.
    let positions: [Int]
    let tokenizer: FullTextTokenizer
    let prefixLengths: [Int]
    let name: String

    /// - Throws: `.misuse` if there can be no such index.
    init<R: Record>(_ index: FullTextIndex<R>, _ plan: RecordPlan) throws(StoreError) {
        func refuse(_ message: String, _ hint: String, _ column: String? = nil) -> StoreError {
            StoreError(
                .misuse, "a full-text index of \(plan.typeName) \(message)", hint: hint,
                table: plan.table, column: column)
        }
        guard plan.rowIDPosition != nil, !plan.isWithoutRowID else {
            throw refuse("needs a key that is one integer", "Declare var id: Int64?.")
        }
        guard !index.paths.isEmpty else {
            throw refuse("has no property", "Name one at least: FullTextIndex(\\.title).")
        }
        var positions: [Int] = []
        for path in index.paths {
            let position = try plan.position(of: path)
            let column = plan.columns[position]
            guard column.storage == .text, column.kind == ValueKind(String.self),
                column.encoding == nil
            else {
                throw refuse(
                    "has a property that is not a text", "Index properties of type String.",
                    column.name)
            }
            // FTS4 takes a text with "=" for an option, and has these names for itself.
            let reserved = ["rowid", "docid", "oid"]
            guard !column.name.contains("="), !reserved.contains(column.name.asciiLowercased),
                !positions.contains(position)
            else {
                throw refuse(
                    "cannot have this column", "Give the property another name, and name it once.",
                    column.name)
            }
            positions.append(position)
        }
        guard index.prefixLengths.allSatisfy({ 1...100 ~= $0 }) else {
            throw refuse("has a prefix length out of range", "Use lengths from 1 to 100.")
        }
        (self.plan, self.positions, tokenizer) = (plan, positions, index.tokenizer)
        (prefixLengths, name) = (index.prefixLengths, index.name ?? "\(plan.table)_text")
        guard !plan.columns.contains(where: { $0.name.isSameIdentifier(as: name) }) else {
            throw refuse("has the name of a column, \(name)", "Give it another name.")
        }
    }

    // MARK: SQL

    func quotedName() throws(StoreError) -> String { try name.quotedIdentifier() }

    private var quotedColumns: [String] { positions.map { plan.quotedColumns[$0] } }

    /// The name of an object, and the SQL that makes it.
    struct Part {
        let name: String
        let sql: String
    }

    func table() throws(StoreError) -> Part {
        var arguments = quotedColumns + ["tokenize=\(tokenizer.argument)"]
        if !prefixLengths.isEmpty {
            let lengths = prefixLengths.map(String.init).joined(separator: ",")
            arguments.append("prefix=\"\(lengths)\"")
        }
        return Part(
            name: name,
            sql: "CREATE VIRTUAL TABLE \(try quotedName()) USING fts4("
                + "\(arguments.joined(separator: ", ")))")
    }

    /// The triggers that follow each change of a row.
    ///
    /// REPLACE deletes a row without firing a trigger, so each new row first deletes what the index
    /// has under its row id.
    func triggers() throws(StoreError) -> [Part] {
        guard let key = plan.rowIDPosition else { return [] }
        let table = try quotedName()
        let keyColumn = plan.quotedColumns[key]
        let columns = quotedColumns
        func delete(_ row: String) -> String {
            "DELETE FROM \(table) WHERE docid = \(row).\(keyColumn)"
        }
        let values = columns.map { "new.\($0)" }.joined(separator: ", ")
        let insert =
            "INSERT INTO \(table)(docid, \(columns.joined(separator: ", "))) "
            + "VALUES (new.\(keyColumn), \(values))"
        let updated = ([keyColumn] + columns).joined(separator: ", ")
        func trigger(
            _ suffix: String, _ event: String, _ body: String...
        ) throws(StoreError)
            -> Part
        {
            let name = "\(name)_\(suffix)"
            return Part(
                name: name,
                sql: "CREATE TRIGGER \(try name.quotedIdentifier()) AFTER \(event) ON "
                    + "\(plan.quotedTable) BEGIN \(body.map { $0 + "; " }.joined())END")
        }
        return [
            try trigger("insert", "INSERT", delete("new"), insert),
            try trigger("update", "UPDATE OF \(updated)", delete("old"), delete("new"), insert),
            try trigger("delete", "DELETE", delete("old")),
        ]
    }

    /// Adds all rows of the table.
    func fill() throws(StoreError) -> String {
        guard let key = plan.rowIDPosition else { return "" }
        let columns = quotedColumns.joined(separator: ", ")
        return "INSERT INTO \(try quotedName())(docid, \(columns)) "
            + "SELECT \(plan.quotedColumns[key]), \(columns) FROM \(plan.quotedTable)"
    }

    /// The index in words, for a difference.
    var description: String {
        "a full-text index \(name) of "
            + positions.map { plan.columns[$0].name }.joined(separator: ", ")
    }
}
