import Coffer

/// The name of a keyring in a replica: keyrings of a term are counted.
struct KeyringName: Hashable, Comparable, Sendable {
    /// Of the owner that has put it there.
    let term: UInt64
    /// From 0 on in each term.
    let number: UInt64

    static let folder = "keyring/"

    var name: String {
        Self.folder + [term, number].map(\.bigEndianBytes.hexDigits).joined(separator: "/")
    }

    init(term: UInt64, number: UInt64) {
        (self.term, self.number) = (term, number)
    }

    /// Reads the name of an object; `nil` for that of no keyring.
    init?(name: String) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let term = UInt64(parts[1], radix: 16),
            let number = UInt64(parts[2], radix: 16)
        else { return nil }
        self.init(term: term, number: number)
        guard self.name == name else { return nil }
    }

    static func < (one: KeyringName, other: KeyringName) -> Bool {
        (one.term, one.number) < (other.term, other.number)
    }
}
