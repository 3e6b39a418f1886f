/// Finds the words of a text in any language that separates words.
///
/// A word is the longest possible run of letters, marks and numbers, as Unicode classifies them. An
/// apostrophe (`'` or `’`, which are the same) inside a word belongs to it: `don't` is one word.
/// Joiners (U+200C, U+200D) inside a word are left out of it. Each ideograph is a word by itself,
/// because nothing separates them: search for several as a phrase. Languages that are written in
/// letters without spaces, such as Thai, are not split into words.
///
/// Words are compared without regard to case by default, and scalar by scalar: `é` and `e` with a
/// combining accent are different, unless `removesDiacritics`.
///
/// - Complexity: O(*bytes*); words are found as they are asked for.
public struct WordTokenizer: Tokenizer, Hashable {
    /// Whether `Straße`, `STRASSE` and `strasse` are the same.
    public var foldsCase: Bool
    /// Whether `Queensrÿche` and `Queensryche` are the same: accents of the Latin, Greek and
    /// Cyrillic scripts do not count.
    public var removesDiacritics: Bool

    /// Makes a tokenizer.
    ///
    /// - Parameters:
    ///   - foldsCase: Whether capitals are the same as small letters.
    ///   - removesDiacritics: Whether letters with accents are the same as those without.
    public init(foldsCase: Bool = true, removesDiacritics: Bool = false) {
        self.foldsCase = foldsCase
        self.removesDiacritics = removesDiacritics
    }

    /// The words of a text, in order.
    public func tokens(in text: String) -> Words {
        Words(scalars: text.unicodeScalars.makeIterator(), tokenizer: self)
    }

    /// The words of one text, each found when it is asked for.
    public struct Words: Sequence, IteratorProtocol {
        fileprivate var scalars: String.UnicodeScalarView.Iterator
        fileprivate let tokenizer: WordTokenizer
        /// The position of the next scalar that `read()` returns, in UTF-8 bytes.
        private var offset = 0
        /// A scalar that was read and put back, with its kind.
        private var ahead: (scalar: Unicode.Scalar, kind: Kind)?

        fileprivate init(
            scalars: String.UnicodeScalarView.Iterator, tokenizer: WordTokenizer
        ) {
            self.scalars = scalars
            self.tokenizer = tokenizer
        }

        /// The next word, `nil` after the last one.
        public mutating func next() -> TextToken? {
            while let (scalar, kind) = read() {
                if kind == .part || kind == .whole { return word(from: scalar, kind) }
            }
            return nil
        }

        private mutating func word(from first: Unicode.Scalar, _ kind: Kind) -> TextToken {
            var text = ""
            let start = offset - UTF8.width(first)
            var end = offset
            tokenizer.append(first, to: &text)
            guard kind == .part else { return TextToken(text, at: start..<end) }
            while let (scalar, kind) = read() {
                switch kind {
                case .part:
                    tokenizer.append(scalar, to: &text)
                    end = offset
                case .joiner, .apostrophe:
                    guard let after = read() else { return TextToken(text, at: start..<end) }
                    guard after.kind == .part else {
                        unread(after)
                        return TextToken(text, at: start..<end)
                    }
                    if kind == .apostrophe { text += "'" }
                    tokenizer.append(after.scalar, to: &text)
                    end = offset
                case .whole, .other:
                    unread((scalar, kind))
                    return TextToken(text, at: start..<end)
                }
            }
            return TextToken(text, at: start..<end)
        }

        private mutating func read() -> (scalar: Unicode.Scalar, kind: Kind)? {
            if let (scalar, kind) = ahead {
                ahead = nil
                offset += UTF8.width(scalar)
                return (scalar, kind)
            }
            guard let scalar = scalars.next() else { return nil }
            offset += UTF8.width(scalar)
            return (scalar, Kind(scalar))
        }

        private mutating func unread(_ read: (scalar: Unicode.Scalar, kind: Kind)) {
            ahead = read
            offset -= UTF8.width(read.scalar)
        }
    }

    fileprivate func append(_ scalar: Unicode.Scalar, to text: inout String) {
        if scalar.isASCII {
            let isCapital = "A"..."Z" ~= scalar
            let folded = foldsCase && isCapital ? Unicode.Scalar(scalar.value | 0x20) : scalar
            text.unicodeScalars.append(folded ?? scalar)
            return
        }
        guard foldsCase, scalar.properties.changesWhenCaseFolded else {
            appendStripped(scalar, to: &text)
            return
        }
        // Folds by way of capitals, because two small letters may share one: σ and ς, or ſ and s.
        for capital in scalar.properties.uppercaseMapping.unicodeScalars {
            for small in capital.properties.lowercaseMapping.unicodeScalars {
                appendStripped(small, to: &text)
            }
        }
    }

    private func appendStripped(_ scalar: Unicode.Scalar, to text: inout String) {
        guard removesDiacritics else { return text.unicodeScalars.append(scalar) }
        if let base = Diacritics.strip(scalar) { text.unicodeScalars.append(base) }
    }
}

/// The role of a scalar in the words around it.
private enum Kind {
    /// Joins its neighbours in a word.
    case part
    /// Is a word by itself.
    case whole
    /// Belongs to a word if it is inside it.
    case apostrophe
    /// Like `apostrophe`, but left out of the word.
    case joiner
    /// Separates words.
    case other

    init(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9": self = .part
        case "'", "\u{2019}": self = .apostrophe
        case "\u{200c}", "\u{200d}": self = .joiner
        case _ where scalar.isASCII: self = .other
        default:
            let properties = scalar.properties
            if properties.isIdeographic {
                self = .whole
                return
            }
            switch properties.generalCategory {
            case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter,
                .otherLetter, .nonspacingMark, .spacingMark, .enclosingMark, .decimalNumber,
                .letterNumber, .otherNumber:
                self = .part
            default: self = .other
            }
        }
    }
}
