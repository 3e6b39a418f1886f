/// A moment in the history of a replica, at the end of a commit.
///
/// Later commits have greater positions. Kept elsewhere, a position shows at a restore that the
/// remote hides nothing: a restore to it fails if the remote has only older records.
///
/// ```swift
/// let position = try await replica.caughtUp()
/// print(position)  // 3/1a2b
/// ```
public struct ReplicaPosition: Sendable, Hashable, Comparable, CustomStringConvertible {
    let slot: Slot

    init(_ slot: Slot) {
        self.slot = slot
    }

    /// Reads a position as it was printed; `nil` for another text.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let term = UInt64(parts[0], radix: 16),
            let number = UInt64(parts[1], radix: 16), term > 0
        else { return nil }
        slot = Slot(term: term, number: number)
    }

    /// The owner's term and the record in it, as hex digits: `3/1a2b`.
    public var description: String { slot.description }

    public static func < (one: Self, other: Self) -> Bool { one.slot < other.slot }
}
