/// A moment in the history of a replica, at the end of a commit.
///
/// Later commits have greater positions. A position names its record by a hash, and with it all
/// records before. Kept elsewhere, it shows at a restore that the remote neither hides newer
/// records nor has others in their place: see the parameter `atLeast` of `Store.restore`.
///
/// ```swift
/// let position = try await replica.caughtUp()
/// print(position)  // 3/1a2b-0f3c5d7e8a9b0c1d
/// ```
public struct ReplicaPosition: Sendable, Hashable, Comparable, Codable, LosslessStringConvertible {
    let slot: Slot
    /// The first 8 bytes of the hash of the whole record.
    private let hash: UInt64

    /// - Parameter hash: SHA-256 of the whole record.
    init(_ slot: Slot, _ hash: [UInt8]) {
        self.slot = slot
        self.hash = UInt64(bigEndianAt: 0, of: hash)
    }

    /// Reads a position as it was printed; `nil` for another text.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].utf8.count == 16, let hash = Self.number(parts[1])
        else { return nil }
        let numbers = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let term = Self.number(numbers[0]), term > 0,
            let number = Self.number(numbers[1])
        else { return nil }
        slot = Slot(term: term, number: number)
        self.hash = hash
    }

    private static func number(_ digits: Substring) -> UInt64? {
        // UInt64 reads a sign too.
        digits.first?.isHexDigit == true ? UInt64(digits, radix: 16) : nil
    }

    /// The owner's term, the record in it, and the hash of the record, as hex digits:
    /// `3/1a2b-0f3c5d7e8a9b0c1d`.
    public var description: String { "\(slot)-\(hash.bigEndianBytes.hexDigits)" }

    /// Reads a position from its text.
    ///
    /// - Throws: `DecodingError` if the value is not a text, or the text is not a position.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let position = Self(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "the data is not a position of a replica")
        }
        self = position
    }

    /// Writes the position as its text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// Whether this is the record that the position names.
    func isOf(_ record: SealedRecord) -> Bool { self == ReplicaPosition(record.slot, record.hash) }

    public static func < (one: Self, other: Self) -> Bool { one.slot < other.slot }
}
