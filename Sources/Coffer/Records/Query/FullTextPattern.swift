/// Words to look for by a full-text index.
///
/// ```swift
/// Note.where(.matching("swift database"))                   // both words, anywhere
/// Note.where(.matching(.prefixes(of: "swi dat")))           // while somebody types
/// Note.where(.matching(.phrase("key value store"), in: \.title))
/// ```
///
/// Any text is allowed, such as what a user has typed: signs in it have no meaning. Only
/// ``expression(_:)`` reads the language of FTS4. A pattern without words matches no row.
public struct FullTextPattern: Sendable, ExpressibleByStringLiteral {
    private enum Kind {
        case all
        case any
        case phrase
        case prefixes
        case expression
    }

    private let kind: Kind
    private let text: String

    private init(_ kind: Kind, _ text: String) {
        (self.kind, self.text) = (kind, text)
    }

    /// All words of the text, in any order.
    public init(stringLiteral text: String) {
        self.init(.all, text)
    }

    /// All words of the text, in any order.
    public static func allWords(of text: String) -> FullTextPattern {
        FullTextPattern(.all, text)
    }

    /// At least one word of the text.
    public static func anyWord(of text: String) -> FullTextPattern { FullTextPattern(.any, text) }

    /// The words of the text, one after the other.
    public static func phrase(_ text: String) -> FullTextPattern { FullTextPattern(.phrase, text) }

    /// Words that begin with the words of the text, in any order.
    public static func prefixes(of text: String) -> FullTextPattern {
        FullTextPattern(.prefixes, text)
    }

    /// An expression in the language of FTS4, with `OR`, `NEAR` and quotation marks.
    ///
    /// See <https://www.sqlite.org/fts3.html#full_text_index_queries>. The verb that uses the
    /// condition throws `.sql` if the expression is malformed.
    public static func expression(_ text: String) -> FullTextPattern {
        FullTextPattern(.expression, text)
    }

    /// The text for MATCH in SQL of your own.
    ///
    /// ```swift
    /// let words = try FullTextPattern.allWords(of: input).expression(for: Mail.self)
    /// let rows = try tx.rows(
    ///     """
    ///     SELECT mail.id, snippet(mail_text) AS part FROM mail_text
    ///     JOIN mail ON mail.id = docid WHERE mail_text MATCH \(words)
    ///     """)
    /// ```
    ///
    /// - Parameter type: The record type, whose index has a tokenizer.
    /// - Returns: The expression. Empty if the pattern has no word; it matches no row then.
    /// - Throws: `StoreError` `.misuse` if the type has no full-text index; `.tooBig` for more than
    ///   1000 different words.
    public func expression<R: Record>(for type: R.Type) throws -> String {
        try match(try RecordPlan.of(type).requireFullText().tokenizer)
    }

    /// The most different words. FTS4 takes some thousands.
    private static let maximumWordCount = 1000

    /// Makes the text that stands behind MATCH; an empty one if the pattern has no word.
    func match(_ tokenizer: FullTextTokenizer) throws(StoreError) -> String {
        if kind == .expression { return text }
        let found = text.split { $0.isWhitespace || $0 == "\0" }
            .map { Self.word($0, tokenizer.words) }.filter { !$0.isEmpty }
        // The order counts in a phrase, which is one term for FTS4 whatever its length.
        if kind == .phrase { return found.isEmpty ? "" : "\"\(found.joined(separator: " "))\"" }
        let words = Set(found)
        guard words.count <= Self.maximumWordCount else {
            throw StoreError(
                .tooBig,
                "the pattern has \(words.count) words, and \(Self.maximumWordCount) are possible",
                hint: "Search for fewer words, or for a phrase.")
        }
        let end = kind == .prefixes ? "*" : ""
        let quoted = words.sorted().map { "\"\($0)\(end)\"" }
        return quoted.joined(separator: kind == .any ? " OR " : " ")
    }

    /// A word without the signs that mean something between quotation marks, and without signs at
    /// its ends; empty if it has nothing that a tokenizer takes.
    private static func word(_ word: Substring, _ words: FullTextTokenizer.Words) -> String {
        let scalars = word.unicodeScalars.map { "\"*^".unicodeScalars.contains($0) ? " " : $0 }
        guard let first = scalars.firstIndex(where: words.mayHave),
            let last = scalars.lastIndex(where: words.mayHave)
        else { return "" }
        var kept = String.UnicodeScalarView()
        kept.append(contentsOf: scalars[first...last])
        return String(kept)
    }
}

extension FullTextTokenizer.Words {
    /// Whether a scalar may be part of a word.
    fileprivate func mayHave(_ scalar: Unicode.Scalar) -> Bool {
        switch self {
        case .unknown: return scalar != " "
        case .nearlyAll:
            return !scalar.isASCII || scalar == "_" || Character(scalar).isLetter
                || Character(scalar).isNumber
        case .letters:
            switch scalar.properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter,
                .otherLetter, .decimalNumber, .letterNumber, .otherNumber, .privateUse:
                return true
            default:
                // A scalar that Unicode 6.1 did not know is a letter for the tokenizer.
                guard let age = scalar.properties.age else { return true }
                return (age.major, age.minor) > (6, 1)
            }
        }
    }
}

extension Condition {
    /// True where the texts of the row match a pattern, by the type's full-text index
    /// (``Record/fullTextIndex``).
    ///
    /// ```swift
    /// let found = try tx.fetch(Note.where(.matching("swift database") && \.pinned == true))
    /// ```
    ///
    /// - Parameters:
    ///   - pattern: The words; a literal means all of its words.
    ///   - path: A property of the index; `nil` for all of them together.
    /// - Note: The verb that uses the condition throws `.misuse` for a type without such an index,
    ///   or for a property outside of it; `.tooBig` for more than 1000 words; `.mismatch` if the
    ///   file does not have the index yet, or has one that does not follow the table.
    /// - Complexity: O(*matches* × log *rows*), and reading the lists of the words.
    public static func matching(
        _ pattern: FullTextPattern, in path: PartialKeyPath<R>? = nil
    ) -> Condition {
        do throws(StoreError) {
            let plan = try RecordPlan.of(R.self)
            let index = try plan.requireFullText()
            let table = try index.quotedName()
            var searched = table
            if let path {
                let position = try plan.position(of: path)
                guard index.positions.contains(position) else {
                    throw StoreError(
                        .misuse, "the full-text index of \(plan.typeName) has not this property",
                        hint: "Add it to the index, or leave the property out.", table: plan.table,
                        column: plan.columns[position].name)
                }
                searched = plan.quotedColumns[position]
            }
            let rowID = plan.qualifiedColumns[index.plan.rowIDPosition ?? 0]
            let words = try pattern.match(index.tokenizer)
            var sql: SQL =
                """
                \(SQL(text: rowID)) IN (SELECT docid FROM \(SQL(text: table)) \
                WHERE \(SQL(text: "\(table).\(searched)")) MATCH \(words))
                """
            sql.requirements.append(index)
            return Condition(sql)
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}
