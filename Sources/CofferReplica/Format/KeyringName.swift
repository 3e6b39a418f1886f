import Coffer

/// The name of a keyring in a replica. Those of a term are counted from 0 on.
struct KeyringName: Hashable, Comparable, Sendable {
    static let folder = "keyring/"

    /// The term of the owner that has put it there, and the number in it.
    private let place: Slot

    init(term: UInt64, number: UInt64) {
        place = Slot(term: term, number: number)
    }

    /// Reads the name of an object; `nil` for that of no keyring.
    init?(name: String) {
        guard let place = Slot(name: name, in: Self.folder) else { return nil }
        self.place = place
    }

    var term: UInt64 { place.term }

    var number: UInt64 { place.number }

    /// The name of the object.
    var name: String { place.name(in: Self.folder) }

    static func < (one: KeyringName, other: KeyringName) -> Bool { one.place < other.place }
}
