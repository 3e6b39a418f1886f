#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Conditions on texts.
///
/// They compare as Swift's `utf8` does, scalar by scalar: `é` and `e` with an accent of its own are
/// two texts. Without regard to case means that of A to Z, as the engine knows it.
extension Condition {
    /// True where the text begins with another one; false for NULL.
    ///
    /// ```swift
    /// Note.where(.hasPrefix(\.title, "Re: ") && \.pinned == true)
    /// ```
    ///
    /// - Complexity: With regard to case an index of the column answers it, O(log *rows* + found);
    ///   not in a file of UTF-16.
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

    /// True where the text is like a pattern, in which `%` stands for any text, `_` for one
    /// character and `\` takes the next sign as it is. A to Z are without case; false for NULL.
    ///
    /// - Note: The corresponding SQL is `LIKE … ESCAPE '\'`.
    public static func like(_ path: KeyPath<R, String>, _ pattern: String) -> Condition {
        Condition(path) { $0.like(pattern) }
    }

    /// True where the text is like a pattern; false for NULL.
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
        // Whatever collation the column of a foreign table has. BINARY compares the bytes as the
        // file keeps them, and those of UTF-16 do not order as texts do.
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
        // As bytes: SQLite's functions of texts end at the first NUL.
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
    /// The text as LIKE finds it, with `\` for ESCAPE.
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
    /// UTF-8 orders as its scalars do.
    var firstTextBehindPrefix: String? {
        var scalars = Array(unicodeScalars)
        while let last = scalars.popLast() {
            // Behind U+D7FF come the surrogates, which are no scalars.
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
