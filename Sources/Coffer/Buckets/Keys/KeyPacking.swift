#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes the parts of a composite key one after the other, so that the bytes have the order of the
/// parts: the first one counts most.
///
/// `Documentation/file-format.md` describes the bytes. A part of a fixed length is its bytes. Any
/// other part ends with 00 01 unless it is the last one, and has 00 FF in place of each zero byte:
/// `a` then comes before everything that begins with `a`, whatever part follows.
struct KeyPacker {
    private(set) var bytes: [UInt8] = []

    /// Adds a part.
    ///
    /// - Parameters:
    ///   - value: What `storedKey()` of the part gives.
    ///   - part: The type of the part.
    ///   - end: What follows it.
    /// - Throws: `.mismatch` if the value is not of the part's class.
    mutating func add(_ value: Value, as part: BucketKeyType.Part, end: End) throws(StoreError) {
        switch (part, value) {
        case (.integer, .integer(let integer)):
            bytes += (UInt64(bitPattern: integer) ^ Self.signBit).bigEndianBytes
        case (.bool, .integer(let integer)): bytes.append(integer == 0 ? 0 : 1)
        case (.date, .real(let real)): bytes += Self.ordered(real).bigEndianBytes
        case (.unsigned, .blob(let data)) where data.count == 8: bytes += data
        case (.uuid, .blob(let data)) where data.count == 16: bytes += data
        case (.text, .text(let text)): add(text.utf8, end)
        case (.bytes, .blob(let data)): add(data, end)
        default:
            throw StoreError(.mismatch, "a part of the key is not of the type \(part.rawValue)")
        }
    }

    /// The position of a part in the key, which decides whether the part needs a terminator.
    enum End {
        /// Another part.
        case part
        /// Nothing: it is the last one.
        case key
        /// Any bytes: the part is the beginning of one, and not the last part of its key.
        case anything
    }

    private mutating func add(_ part: some Sequence<UInt8>, _ end: End) {
        guard end != .key else {
            bytes += part
            return
        }
        for byte in part {
            bytes.append(byte)
            if byte == 0 { bytes.append(Self.escapedZero) }
        }
        if end == .part { bytes += [0, Self.terminator] }
    }

    fileprivate static let signBit: UInt64 = 1 << 63
    fileprivate static let terminator: UInt8 = 0x01
    fileprivate static let escapedZero: UInt8 = 0xff

    /// Bits whose order as an unsigned integer is the order of the numbers. 0.0 and -0.0 are one
    /// number.
    fileprivate static func ordered(_ real: Double) -> UInt64 {
        let bits = (real == 0 ? 0 : real).bitPattern
        return bits & signBit == 0 ? bits | signBit : ~bits
    }
}

/// Reads the parts of a composite key, in order.
struct KeyUnpacker {
    private var rest: Data.SubSequence

    init(_ bytes: Data) {
        rest = bytes[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// Reads the next part.
    ///
    /// - Parameters:
    ///   - part: The type of the part.
    ///   - isLast: Whether the key ends with it.
    /// - Throws: `.mismatch` if the bytes are not such a part.
    mutating func next(
        _ part: BucketKeyType.Part, isLast: Bool
    ) throws(StoreError) -> Value {
        switch part {
        case .integer:
            let bits = UInt64(bigEndianBytes: try take(8)) ^ KeyPacker.signBit
            return .integer(Int64(bitPattern: bits))
        case .bool:
            let byte = try take(1)
            guard let byte = byte.first, byte <= 1 else { throw Self.malformed }
            return .integer(Int64(byte))
        case .date:
            let bits = UInt64(bigEndianBytes: try take(8))
            let real = Double(
                bitPattern: bits & KeyPacker.signBit == 0 ? ~bits : bits ^ KeyPacker.signBit)
            guard !real.isNaN else { throw Self.malformed }
            return .real(real)
        case .unsigned: return .blob(Data(try take(8)))
        case .uuid: return .blob(Data(try take(16)))
        case .text:
            guard let text = String(validating: try takeVariable(isLast: isLast), as: UTF8.self)
            else { throw Self.malformed }
            return .text(text)
        case .bytes: return .blob(Data(try takeVariable(isLast: isLast)))
        }
    }

    private static let malformed = StoreError(.mismatch, "a stored key is not a composite key")

    private mutating func take(_ count: Int) throws(StoreError) -> Data.SubSequence {
        guard rest.count >= count else { throw Self.malformed }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private mutating func takeVariable(isLast: Bool) throws(StoreError) -> [UInt8] {
        guard !isLast else {
            defer { rest = rest.dropFirst(rest.count) }
            return Array(rest)
        }
        var part: [UInt8] = []
        while let byte = rest.popFirst() {
            guard byte == 0 else {
                part.append(byte)
                continue
            }
            switch rest.popFirst() {
            case KeyPacker.terminator: return part
            case KeyPacker.escapedZero: part.append(0)
            default: throw Self.malformed
            }
        }
        throw Self.malformed
    }
}
