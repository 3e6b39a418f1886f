/// An index of the words in texts of a record's table.
///
/// ```swift
/// static var fullTextIndex: FullTextIndex<Self>? { FullTextIndex(\.title, \.body) }
///
/// let found = try tx.fetch(Note.where(.matching("swift sqlcipher")))
/// ```
///
/// The index is a table of SQLite's FTS4 with a copy of the texts. Triggers follow every change of
/// a row, whichever program makes it. `create`, and the first write of a new table, make both. The
/// file grows by the copy and by the lists of words; all pages are encrypted. See
/// <https://www.sqlite.org/fts3.html>.
///
/// FTS4 sees a text up to its first NUL. It forgets the words of rows that are gone when it merges
/// parts of the index: `Connection.fullText(.optimize, on:)` merges all.
///
/// A row that REPLACE deletes leaves its words in the index until a row gets its row id. No
/// condition finds them.
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
    ///   - paths: Properties of type `String` or `String?`; at least one.
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
    /// Which scalars are parts of words.
    let words: Words

    enum Words: Sendable {
        /// Letters and numbers of Unicode 6.1, and what later versions have added.
        case letters
        /// Letters and digits of ASCII, `_`, and all that is not ASCII.
        case nearlyAll
        case unknown
    }

    /// Words of letters and digits, in all scripts that separate words by spaces or signs. Case
    /// does not count, nor do accents. A run of Japanese, Chinese or Thai is one word: use
    /// ``registered(_:)`` there.
    public static let unicode = FullTextTokenizer(argument: "unicode61", words: .letters)

    /// English words by their stems: `run` and `running` find each other. The case of A to Z does
    /// not count; accents do. A prefix of a word may miss its stem.
    public static let englishStems = FullTextTokenizer(argument: "porter", words: .nearlyAll)

    /// A tokenizer of your own.
    ///
    /// ```swift
    /// configuration.prepare = { try $0.register(tokenizer: WordTokenizer(), named: "words") }
    /// static var fullTextIndex: FullTextIndex<Self>? {
    ///     FullTextIndex(\.body, tokenizer: .registered("words"))
    /// }
    /// ```
    ///
    /// A program that has not registered it cannot change the texts of the table: that is
    /// `.notFound`, or an error of the other program.
    ///
    /// - Parameter name: The name under which `Connection.register(tokenizer:named:)` knows it.
    public static func registered(_ name: String) -> FullTextTokenizer {
        let quoted = name.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: "''")
        return FullTextTokenizer(argument: "coffer '\(quoted)'", words: .unknown)
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
        (prefixLengths, name) = (index.prefixLengths, index.name ?? Self.defaultName(plan))
        guard !plan.columns.contains(where: { $0.name.isSameIdentifier(as: name) }) else {
            throw refuse("has the name of a column, \(name)", "Give it another name.")
        }
    }

    static func defaultName(_ plan: RecordPlan) -> String { "\(plan.table)_text" }

    /// The ends of the names of its triggers.
    static let triggerSuffixes = ["insert", "update", "delete"]

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
        // Another trigger may have changed the row since, so its texts are read again.
        let insert =
            "INSERT INTO \(table)(docid, \(columns.joined(separator: ", "))) "
            + "SELECT \(([keyColumn] + columns).joined(separator: ", ")) FROM \(plan.quotedTable) "
            + "WHERE \(keyColumn) = new.\(keyColumn)"
        // A list of columns would not notice the row id under another name.
        let isChanged = ([keyColumn] + columns).map {
            "new.\($0) IS NOT old.\($0) COLLATE BINARY"
        }.joined(separator: " OR ")
        func trigger(
            _ suffix: String, _ event: String, when condition: String = "", _ body: String...
        ) throws(StoreError) -> Part {
            let name = "\(name)_\(suffix)"
            return Part(
                name: name,
                sql: "CREATE TRIGGER \(try name.quotedIdentifier()) AFTER \(event) ON "
                    + "\(plan.quotedTable) \(condition)BEGIN \(body.map { $0 + "; " }.joined())END")
        }
        return [
            try trigger(Self.triggerSuffixes[0], "INSERT", delete("new"), insert),
            try trigger(
                Self.triggerSuffixes[1], "UPDATE", when: "WHEN \(isChanged) ", delete("old"),
                delete("new"), insert),
            try trigger(Self.triggerSuffixes[2], "DELETE", delete("old")),
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
