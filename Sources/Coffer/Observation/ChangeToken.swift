/// How far a consumer has read the change history; the consumer keeps it, across restarts.
///
/// A text or a `Codable` value, which reveals nothing about any row.
public struct ChangeToken: Sendable, Hashable, Codable, LosslessStringConvertible {
    /// Which history; one that is created again is another one.
    let history: String
    /// The number of the last entry that was read.
    let position: Int64

    init(history: String, position: Int64) {
        self.history = history
        self.position = position
    }

    /// The token as text: letters, digits and one `-`.
    public var description: String { "\(history)-\(position)" }

    /// Reads a token from its text, as `description` gives it; `nil` for a text that is not a
    /// token.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let position = Int64(parts[1]), position >= 0
        else { return nil }
        self.init(history: String(parts[0]), position: position)
    }

    /// Reads the token from its text.
    ///
    /// - Throws: `DecodingError` if the value is not a text, or the text is not a token.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let token = Self(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "the data is not a change token")
        }
        self = token
    }

    /// Writes the token as its text.
    ///
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

/// Entries of the change history, combined by row.
public struct ChangeBatch: Sendable, Hashable {
    /// What happened to each row within the batch, each once, in the order of their first entries.
    /// May be empty although there is more.
    public let changes: [ChangedRow]
    /// Where the next batch begins: keep it once you have processed these changes.
    public let next: ChangeToken
    /// Whether the history has entries after this batch.
    public let hasMore: Bool
}
