/// Words to look for by a full-text index.
///
/// ```swift
/// Note.where(.matching("swift database"))                   // both words, anywhere
/// Note.where(.matching(.prefixes(of: "swi dat")))           // while somebody types
/// Note.where(.matching(.phrase("key value store"), in: \.title))
/// ```
///
/// Any text is allowed, such as what a user has typed: signs have no meaning, but in
/// ``expression(_:)``. A pattern without words matches no row.
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

    /// The expression for MATCH; empty if there is no word.
    func match(_ tokenizer: FullTextTokenizer) -> String {
        if kind == .expression { return text }
        let words = text.split { $0.isWhitespace || $0 == "\0" }
            .map { Self.word($0, tokenizer) }.filter { !$0.isEmpty }
        guard !words.isEmpty else { return "" }
        switch kind {
        case .any: return words.map { "\"\($0)\"" }.joined(separator: " OR ")
        case .phrase: return "\"\(words.joined(separator: " "))\""
        case .prefixes: return words.map { "\"\($0)*\"" }.joined(separator: " ")
        case .all, .expression: return words.map { "\"\($0)\"" }.joined(separator: " ")
        }
    }

    /// A word without the signs that mean something between quotation marks, and without signs at
    /// its ends; empty if it has nothing that a tokenizer takes.
    private static func word(_ word: Substring, _ tokenizer: FullTextTokenizer) -> String {
        func isPart(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                || scalar.properties.generalCategory == .nonspacingMark
                || !tokenizer.isAlphanumeric && !scalar.isASCII
        }
        let scalars = word.unicodeScalars.map { "\"*^".unicodeScalars.contains($0) ? " " : $0 }
        guard let first = scalars.firstIndex(where: isPart),
            let last = scalars.lastIndex(where: isPart)
        else { return "" }
        var kept = String.UnicodeScalarView()
        kept.append(contentsOf: scalars[first...last])
        return String(kept)
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
    ///   or for a property outside of it; `.mismatch` if the file does not have the index yet.
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
            return Condition(
                """
                \(SQL(text: rowID)) IN (SELECT docid FROM \(SQL(text: table)) \
                WHERE \(SQL(text: "\(table).\(searched)")) MATCH \(pattern.match(index.tokenizer)))
                """)
        } catch {
            return Condition(SQL(failure: error))
        }
    }
}
