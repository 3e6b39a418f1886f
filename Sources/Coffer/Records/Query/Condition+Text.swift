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

    /// True where a regular expression matches somewhere in the text; false for NULL.
    ///
    /// ```swift
    /// Note.where(.regexp(\.title, "^[A-Z].*[0-9]{3}$"))
    /// ```
    ///
    /// - `.` is every scalar but a newline; `[abc]`, `[a-z]` and `[^a]` are classes.
    /// - `\d` is `[0-9]`, `\w` is `[0-9A-Za-z_]`, `\s` is `[ \t\n\v\f\r]`; `\D`, `\W` and `\S` are
    ///   all others. `\` before a sign is the sign.
    /// - `*`, `+`, `?`, `{2}`, `{2,}` and `{2,5}` repeat what is before them; `|` separates
    ///   alternatives; `( )` and `(?: )` group.
    /// - `^` is the beginning of the text and `$` its end, also if it has several lines.
    ///
    /// Write a pattern with `\` as `#"\d+"#`. There are no back-references, no groups that look
    /// around, and no lazy quantifiers. So no pattern takes more than linear time. A deadline, an
    /// interruption or a cancelled task also ends a match within a row.
    ///
    /// The pattern matches scalars: `e` with a combining accent is two. A blob in a column of
    /// another program does not match, and a number matches as the text that SQLite makes of it.
    /// No match reaches across a byte that is not UTF-8.
    ///
    /// The verb that uses the condition throws, before the statement runs, `.misuse` for a pattern
    /// that is not in this syntax, with the place in it. It throws `.tooBig` for a pattern of more
    /// than 65,536 bytes, or of more than 10,000 states with its repetitions written out.
    ///
    /// - Parameters:
    ///   - path: The property.
    ///   - pattern: The regular expression. It is compiled once for each run of the statement.
    ///   - isCaseSensitive: Whether the case of A to Z matters. `(?i)` at the beginning of the
    ///     pattern says `false`, too.
    /// - Complexity: O(*bytes of the text* × *states*) for each row, and mostly O(*bytes*); no
    ///   index is used.
    /// - Note: The corresponding SQL is `REGEXP`, see ``Connection/registerRegexp()``.
    public static func regexp(
        _ path: KeyPath<R, String>, _ pattern: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { column throws(StoreError) in
            try column.regexp(pattern, isCaseSensitive)
        }
    }

    /// True where a regular expression matches somewhere in the text; false for NULL.
    public static func regexp(
        _ path: KeyPath<R, String?>, _ pattern: String, isCaseSensitive: Bool = true
    ) -> Condition {
        Condition(path) { column throws(StoreError) in
            try column.regexp(pattern, isCaseSensitive)
        }
    }
}

extension ConditionColumn {
    func like(_ pattern: String) -> SQL {
        SQL(text: "\(name) LIKE ? ESCAPE '\\'", arguments: [.text(pattern)])
    }

    fileprivate func regexp(_ pattern: String, _ isCaseSensitive: Bool) throws(StoreError) -> SQL {
        do throws(StoreError) {
            _ = try Regexp(pattern)
        } catch {
            throw error.with(table: table, column: errorName)
        }
        let isFlagged = isCaseSensitive || Regexp.ignoresCase(pattern)
        let flag = isFlagged ? "" : Regexp.ignoringCase
        var sql = SQL(
            text: "\(Regexp.function)(?, \(name))", arguments: [.text(flag + pattern)])
        sql.requirements = [RegexpFunction()]
        return sql
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
