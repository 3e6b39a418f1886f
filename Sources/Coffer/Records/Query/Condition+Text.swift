#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Conditions on texts.
///
/// They compare Unicode scalars, as Swift's `utf8` views do: `é` and `e` with a combining accent
/// are two texts. Case-insensitive means that the case of A to Z is ignored, as in SQLite's LIKE,
/// which also sees a text up to its first NUL only.
extension Condition {
    /// True where the text begins with another one; false for NULL.
    ///
    /// ```swift
    /// Note.where(.hasPrefix(\.title, "Re: ") && \.pinned == true)
    /// ```
    ///
    /// - Complexity: A case-sensitive prefix can use an index of the column, O(log *rows* + found),
    ///   except in a UTF-16 file.
    public static func hasPrefix(
        _ path: KeyPath<R, String>, _ prefix: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.hasPrefix(prefix, isCaseSensitive) }
    }

    /// True where the text begins with another one; false for NULL.
    public static func hasPrefix(
        _ path: KeyPath<R, String?>, _ prefix: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.hasPrefix(prefix, isCaseSensitive) }
    }

    /// True where the text ends with another one; false for NULL.
    public static func hasSuffix(
        _ path: KeyPath<R, String>, _ suffix: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.hasSuffix(suffix, isCaseSensitive) }
    }

    /// True where the text ends with another one; false for NULL.
    public static func hasSuffix(
        _ path: KeyPath<R, String?>, _ suffix: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.hasSuffix(suffix, isCaseSensitive) }
    }

    /// True where the text contains another one; false for NULL.
    public static func contains(
        _ path: KeyPath<R, String>, _ text: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.contains(text, isCaseSensitive) }
    }

    /// True where the text contains another one; false for NULL.
    public static func contains(
        _ path: KeyPath<R, String?>, _ text: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { $0.contains(text, isCaseSensitive) }
    }

    /// True where the text matches a pattern. `%` matches any text, `_` matches one character, and
    /// `\` makes the next character literal. The case of A to Z is ignored; false for NULL.
    ///
    /// - Note: The corresponding SQL is `LIKE … ESCAPE '\'`.
    public static func like(_ path: KeyPath<R, String>, _ pattern: String) -> Condition {
        Condition(path) { $0.like(pattern) }
    }

    /// True where the text matches a pattern; false for NULL.
    public static func like(_ path: KeyPath<R, String?>, _ pattern: String) -> Condition {
        Condition(path) { $0.like(pattern) }
    }
}

extension ConditionColumn {
    func like(_ pattern: String) -> SQL {
        SQL(text: "\(name) LIKE ? ESCAPE '\\'", arguments: [.text(pattern)])
    }

    fileprivate func hasPrefix(_ prefix: String, _ isCaseSensitive: Bool) -> SQL {
        guard isCaseSensitive else { return like(prefix.escapedForLike + "%") }
        // COLLATE BINARY overrides the collation of a column that another program declared. It
        // compares the bytes in the file, and UTF-16 bytes do not sort as texts do.
        let isUTF8 = "CAST('a' AS BLOB) = x'61'"
        // Every text is less than any blob.
        let end = prefix.firstTextBehindPrefix.map { Value.text($0) } ?? .blob(Data())
        return SQL(
            text: "(\(name) COLLATE BINARY >= CASE WHEN \(isUTF8) THEN ? ELSE '' END "
                + "AND \(name) COLLATE BINARY < CASE WHEN \(isUTF8) THEN ? ELSE x'' END "
                + "AND (\(isUTF8) OR instr(\(name), ?) = 1))",
            arguments: [.text(prefix), end, .text(prefix)])
    }

    fileprivate func hasSuffix(_ suffix: String, _ isCaseSensitive: Bool) -> SQL {
        guard isCaseSensitive else { return like("%" + suffix.escapedForLike) }
        if suffix.isEmpty { return SQL(text: "\(name) IS NOT NULL") }
        // Compares bytes, because `length` and `substr` of a text stop at the first NUL.
        return SQL(
            text: "substr(CAST(\(name) AS BLOB), -length(CAST(? AS BLOB))) = CAST(? AS BLOB)",
            arguments: [.text(suffix), .text(suffix)])
    }

    fileprivate func contains(_ text: String, _ isCaseSensitive: Bool) -> SQL {
        guard isCaseSensitive else { return like("%" + text.escapedForLike + "%") }
        return SQL(text: "instr(\(name), ?) > 0", arguments: [.text(text)])
    }
}

extension String {
    /// The text escaped so that LIKE matches it literally, with `\` as the ESCAPE character.
    var escapedForLike: String {
        var escaped = ""
        for scalar in unicodeScalars {
            if ["%", "_", "\\"].contains(scalar) { escaped += "\\" }
            escaped.unicodeScalars.append(scalar)
        }
        return escaped
    }

    /// The first text that is greater than every text with this prefix; `nil` if there is none.
    ///
    /// UTF-8 bytes sort as the scalars do.
    var firstTextBehindPrefix: String? {
        var scalars = Array(unicodeScalars)
        while let last = scalars.popLast() {
            // After U+D7FF come the surrogates, which are not scalars.
            guard let next = Unicode.Scalar(last.value + 1) ?? Unicode.Scalar(0xE000),
                last.value < 0x10FFFF
            else { continue }
            scalars.append(next)
            var text = ""
            text.unicodeScalars.append(contentsOf: scalars)
            return text
        }
        return nil
    }
}
