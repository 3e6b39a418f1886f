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
/// The same text must give the same tokens for as long as an index lives. An index made with other
/// tokens finds the wrong rows, until `fullText(.rebuild, on:)`. Coffer provides `WordTokenizer`
/// and `StopWordTokenizer`.
public protocol Tokenizer: Sendable {
    /// The result of `tokens(in:)`: an array, or a sequence that finds tokens as they are asked
    /// for.
    associatedtype Tokens: Sequence<TextToken>

    /// The tokens of a text, in order.
    ///
    /// Called for every text that is indexed or deleted, and for search terms. On FTS3 and FTS4 a
    /// search term ends in `*` if it is a prefix; FTS5 removes the `*`.
    ///
    /// - Parameter text: The text. Each byte that is not UTF-8 is a space in it, so such bytes
    ///   separate words and all ranges are right.
    func tokens(in text: String) -> Tokens
}

/// A word of a text, as full-text search compares it.
public struct TextToken: Sendable, Hashable {
    /// The text to compare, byte by byte: fold case here. It may have any length; FTS5 keeps the
    /// first 32 KiB. A token with empty text is left out.
    public var text: String
    /// The range of the word in its text, in UTF-8 bytes.
    ///
    /// Must lie inside the text and not start before the previous token's range; otherwise the
    /// statement fails with `.misuse`.
    public var range: Range<Int>

    /// Makes a token.
    ///
    /// - Parameters:
    ///   - text: The text to compare.
    ///   - range: The range of the word in its text, in UTF-8 bytes.
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
    /// It stays registered until the connection closes, also after a change of the key. In a store,
    /// register it in `prepareConnections(_:)`. It gets texts only from pages whose MAC fits, and
    /// must not use its connection. A second tokenizer of the same name replaces the first at once.
    ///
    /// A table of FTS3 or FTS4 whose tokenizer is not registered cannot be created. An existing one
    /// can be dropped, and read by row id or as a whole; anything that needs words fails with
    /// `.notFound`. FTS5 refuses an existing table altogether.
    ///
    /// - Parameters:
    ///   - tokenizer: The tokenizer; the connection keeps it.
    ///   - name: The name. The case of ASCII letters does not matter.
    /// - Throws: `StoreError` `.misuse` for an empty name or one with a NUL; `.unsupported` if the
    ///   engine has neither FTS3 nor FTS5, or on a handle owned by someone else. If no key is set
    ///   yet, `setKey(_:)` throws `.unsupported` instead.
    /// - Note: The corresponding SQL is `fts3_tokenizer`, the C function
    ///   `fts5_api.xCreateTokenizer`.
    public func register(tokenizer: some Tokenizer, named name: String) throws {
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw StoreError(.misuse, "the name of a tokenizer must not be empty or contain NUL")
        }
        let any = AnyTokenizer(tokenizer)
        try set("tokenizer \(name.asciiLowercased)") { handle throws(StoreError) in
            try handle.register(any, named: name)
        }
    }
}

/// A type-erased tokenizer.
struct AnyTokenizer: Sendable {
    private let make: @Sendable (String) -> AnyIterator<TextToken>

    init(_ tokenizer: some Tokenizer) {
        make = { AnyIterator(tokenizer.tokens(in: $0).makeIterator()) }
    }

    func tokens(in text: String) -> AnyIterator<TextToken> { make(text) }
}
