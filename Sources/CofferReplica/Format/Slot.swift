import Coffer

/// The place of a record: slots of a term are filled one after the other, and never again.
///
/// A term is the time of one owner. The last record of a term is the takeover by the next owner.
struct Slot: Hashable, Comparable, Sendable, CustomStringConvertible {
    let term: UInt64
    let number: UInt64

    /// The first slot of a replica.
    static let first = Slot(term: 1, number: 0)

    /// Slots whose number is a multiple of this have a mark or a takeover, which is never deleted:
    /// so the end of the log is found by reads alone.
    static let markDistance: UInt64 = 1024

    init(term: UInt64, number: UInt64) {
        (self.term, self.number) = (term, number)
    }

    /// Reads the name of an object; `nil` for that of no record.
    init?(name: String) {
        self.init(name: name, in: Self.folder)
    }

    /// Reads the name of an object in a folder of the remote; `nil` for a name of another form.
    init?(name: String, in folder: String) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let term = UInt64(parts[1], radix: 16),
            let number = UInt64(parts[2], radix: 16)
        else { return nil }
        (self.term, self.number) = (term, number)
        guard self.name(in: folder) == name else { return nil }
    }

    var next: Slot { Slot(term: term, number: number + 1) }

    var beginningOfNextTerm: Slot { Slot(term: term + 1, number: 0) }

    var isForMark: Bool { number.isMultiple(of: Self.markDistance) }

    /// Where all records are.
    static let folder = "log/"

    /// The name of the object.
    var name: String { name(in: Self.folder) }

    /// The name in a folder of the remote.
    func name(in folder: String) -> String {
        "\(folder)\(term.paddedHexDigits)/\(number.paddedHexDigits)"
    }

    /// A position as people write it: term and slot as hex digits.
    var description: String {
        "\(String(term, radix: 16))/\(String(number, radix: 16))"
    }

    static func < (one: Slot, other: Slot) -> Bool {
        (one.term, one.number) < (other.term, other.number)
    }
}

extension Slot: Codable {
    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let parts = try container.decode(String.self).split(separator: "/")
        guard parts.count == 2, let term = UInt64(parts[0], radix: 16),
            let number = UInt64(parts[1], radix: 16)
        else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "the data is not a slot of a replica")
        }
        self.init(term: term, number: number)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension UInt64 {
    /// 16 hex digits, in lower case.
    fileprivate var paddedHexDigits: String { bigEndianBytes.hexDigits }
}
