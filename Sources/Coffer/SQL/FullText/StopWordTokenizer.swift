#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Leaves out the words of another tokenizer that are too common to search for.
///
/// ```swift
/// let tokenizer = StopWordTokenizer(words: ["the", "a", "of"], base: WordTokenizer())
/// ```
///
/// A text that ends in `*` keeps all words: in a search of FTS3 or FTS4 a prefix such as `the*` may
/// be a stop word itself.
public struct StopWordTokenizer<Base: Tokenizer>: Tokenizer {
    /// The words to leave out, as `base` folds them.
    public let words: Set<String>
    /// Finds the words.
    public let base: Base

    /// Makes a tokenizer.
    ///
    /// - Parameters:
    ///   - words: The words to leave out, in any form that `base` folds to the same. An entry that
    ///     `base` does not split into exactly one word is ignored.
    ///   - base: Finds the words.
    public init(words: some Sequence<String>, base: Base) {
        self.base = base
        var folded: Set<String> = []
        for word in words {
            var tokens = base.tokens(in: word).makeIterator()
            guard let token = tokens.next(), tokens.next() == nil else { continue }
            folded.insert(token.text)
        }
        self.words = folded
    }

    /// Makes a tokenizer with the stop words of a file: UTF-8, one in each line.
    ///
    /// Lines end in LF or CRLF; empty ones are skipped.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - base: Finds the words.
    /// - Throws: `StoreError` `.notFound` if there is no such file, `.io` if it cannot be read,
    ///   `.mismatch` if it is not UTF-8.
    public init(contentsOf url: URL, base: Base) throws {
        let path = url.path
        guard FileManager.default.fileExists(atPath: path) else {
            throw StoreError(.notFound, "there is no file of stop words at \(path)")
        }
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch {
            throw StoreError(.io, "the stop words in \(path) cannot be read", cause: error)
        }
        let text = data.withUnsafeBytes { String(exactly: $0.assumingMemoryBound(to: UInt8.self)) }
        guard let text else { throw StoreError(.mismatch, "the file \(path) is not UTF-8") }
        // Splits scalars, because CR and LF are one `Character`. A byte order mark does not belong
        // to a word.
        let lines = text.unicodeScalars.split { $0 == "\n" || $0 == "\r" || $0 == "\u{feff}" }
        self.init(words: lines.lazy.map { String($0) }, base: base)
    }

    /// The words of a text without the stop words.
    public func tokens(in text: String) -> LazyFilterSequence<Base.Tokens> {
        let keepsAll = text.utf8.last == UInt8(ascii: "*")
        let words = words
        return base.tokens(in: text).lazy.filter { keepsAll || !words.contains($0.text) }
    }
}
