/// Splits texts into the words that full-text search finds.
///
/// ```swift
/// struct Lines: Tokenizer {
///     func tokens(in text: String) -> [TextToken] {
///         var start = 0
///         return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
///             defer { start += line.utf8.count + 1 }
///             return TextToken(String(line), at: start..<start + line.utf8.count)
///         }
///     }
/// }
/// ```
///
/// The same text has to give the same tokens for as long as an index lives: one that was made with
/// other tokens finds the wrong rows, until `fullText(.rebuild, on:)`. `WordTokenizer` and
/// `StopWordTokenizer` are there already.
public protocol Tokenizer: Sendable {
    /// What `tokens(in:)` gives: an array, or a sequence that finds them as they are asked for.
    associatedtype Tokens: Sequence<TextToken>

    /// The tokens of a text, in order.
    ///
    /// It is called for every text that is indexed or deleted, and for what is searched for. On
    /// FTS3 and FTS4 the latter ends in `*` where words are meant by their beginnings; FTS5
    /// takes the `*` away.
    ///
    /// - Parameter text: The text. Bytes that are not UTF-8 are spaces in it, one for each, so that
    ///   they part words and all ranges are right.
    func tokens(in text: String) -> Tokens
}

/// A word of a text, as full-text search compares it.
public struct TextToken: Sendable, Hashable {
    /// What is compared, byte by byte: fold case here. Of any length; FTS5 keeps the first 32 KiB.
    /// A token without text is left out.
    public var text: String
    /// Where the word stands in its text, in UTF-8 bytes.
    ///
    /// Inside the text, and not before the one of the token before it; else the statement is
    /// `.misuse`.
    public var range: Range<Int>

    /// Makes a token.
    ///
    /// - Parameters:
    ///   - text: What is compared.
    ///   - range: Where it stands, in UTF-8 bytes.
    public init(_ text: String, at range: Range<Int>) {
        self.text = text
        self.range = range
    }
}

extension Connection {
    /// Registers a tokenizer for full-text tables.
    ///
    /// ```swift
    /// try connection.register(tokenizer: WordTokenizer(), named: "words")
    /// try connection.execute("CREATE VIRTUAL TABLE mail USING fts4(body, tokenize=coffer words)")
    /// ```
    ///
    /// FTS3 and FTS4 find it as `tokenize=coffer words`, FTS5 (SQLCipher 4) as `tokenize='words'`.
    /// It lives until the connection closes, and over a change of the key. In a store, register it
    /// in `Configuration.prepare`. Like a function it sees authentic texts only, and may not use
    /// its connection. Another one of the same name takes its place at once.
    ///
    /// A table of FTS3 or FTS4 whose tokenizer is not registered cannot be made. One that is in the
    /// file already can be read by row id or as a whole, and dropped; what needs words is
    /// `.notFound`. FTS5 refuses it altogether.
    ///
    /// - Parameters:
    ///   - tokenizer: The tokenizer; kept.
    ///   - name: In any case of its ASCII letters. Neither empty nor with a NUL.
    /// - Throws: `StoreError` `.misuse` for such a name; `.unsupported` if the engine has neither
    ///   FTS3 nor FTS5, or on a handle of another owner's. Before the key is set `setKey(_:)`
    ///   throws it.
    /// - Note: The corresponding SQL is `fts3_tokenizer`, the C function
    ///   `fts5_api.xCreateTokenizer`.
    public func register(tokenizer: some Tokenizer, named name: String) throws {
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw StoreError(.misuse, "the name of a tokenizer is neither empty nor contains NUL")
        }
        let any = AnyTokenizer(tokenizer)
        try set("tokenizer \(name.asciiLowercased)") { handle throws(StoreError) in
            try handle.register(any, named: name)
        }
    }
}

/// A tokenizer whose type is forgotten.
struct AnyTokenizer: Sendable {
    private let make: @Sendable (String) -> AnyIterator<TextToken>

    init(_ tokenizer: some Tokenizer) {
        make = { AnyIterator(tokenizer.tokens(in: $0).makeIterator()) }
    }

    func tokens(in text: String) -> AnyIterator<TextToken> { make(text) }
}
