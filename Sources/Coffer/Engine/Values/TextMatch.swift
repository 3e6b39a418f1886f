/// One match of a searched word in a row: one entry of the result of `offsets()`.
///
/// ```swift
/// let row = try connection.firstRow("SELECT body, offsets(mail) AS o FROM mail WHERE …")
/// for match in try TextMatch.parse(row?.get("o", as: String?.self)) { … }
/// ```
///
/// See <https://www.sqlite.org/fts3.html#the_offsets_function>; FTS5 has no such function.
public struct TextMatch: Sendable, Hashable {
    /// The column, from 0.
    public let column: Int
    /// Which term of the search it is, from 0.
    public let term: Int
    /// The position in the column's text, in UTF-8 bytes.
    public let range: Range<Int>

    /// Makes a match.
    public init(column: Int, term: Int, range: Range<Int>) {
        self.column = column
        self.term = term
        self.range = range
    }

    /// Parses the result of `offsets()`.
    ///
    /// - Parameter offsets: Four numbers for each match; `nil` for NULL.
    /// - Returns: The matches in order; an empty array for NULL or an empty text.
    /// - Throws: `StoreError` `.mismatch` if the text is something else.
    /// - Complexity: O(*bytes*).
    public static func parse(_ offsets: String?) throws -> [TextMatch] {
        var numbers: [Int] = []
        for word in (offsets ?? "").utf8.split(separator: UInt8(ascii: " ")) {
            guard let number = Int(Substring(word)), number >= 0 else { throw notOffsets }
            numbers.append(number)
        }
        guard numbers.count % 4 == 0 else { throw notOffsets }
        return try stride(from: 0, to: numbers.count, by: 4).map { index in
            let (end, overflow) = numbers[index + 2].addingReportingOverflow(numbers[index + 3])
            guard !overflow else { throw notOffsets }
            return TextMatch(
                column: numbers[index], term: numbers[index + 1], range: numbers[index + 2]..<end)
        }
    }

    private static var notOffsets: StoreError {
        StoreError(.mismatch, "the text is not what offsets() returns: numbers in groups of four")
    }

    /// The range of the match in the column's text. `nil` if the range is not inside the text or
    /// splits a Unicode scalar: the match then belongs to another text.
    ///
    /// - Complexity: O(1) for a native Swift text.
    public func range(in text: String) -> Range<String.Index>? {
        let bytes = text.utf8
        guard
            let start = bytes.index(
                bytes.startIndex, offsetBy: range.lowerBound, limitedBy: bytes.endIndex),
            let end = bytes.index(start, offsetBy: range.count, limitedBy: bytes.endIndex),
            let from = start.samePosition(in: text.unicodeScalars),
            let to = end.samePosition(in: text.unicodeScalars)
        else { return nil }
        return from..<to
    }
}
