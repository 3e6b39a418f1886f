#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A key of several parts, in the order of the first, then of the second, and so on.
///
/// ```swift
/// let events = Bucket<CompositeKey<UserID, Date>, Event>("events")
/// try tx.set(event, for: CompositeKey(user, .now), in: events)
/// let ofUser = try tx.entries(in: events, .starting(with: user))
/// let (user, time) = ofUser[0].key.parts
/// ```
///
/// The parts may be any other keys, also composite ones.
public struct CompositeKey<each Part: BucketKey>: BucketKey {
    /// The parts, as a tuple.
    public let parts: (repeat each Part)

    /// Makes a key of its parts.
    public init(_ part: repeat each Part) {
        parts = (repeat each part)
    }

    /// ``BucketKeyType/composite(_:)`` of the parts' types.
    public static var keyType: BucketKeyType {
        var types: [BucketKeyType] = []
        for type in repeat (each Part).self { types.append(type.keyType) }
        return .composite(types)
    }

    /// The bytes of all parts; throws as the parts do.
    public func storedKey() throws(StoreError) -> Value {
        .blob(Data(try packed(end: .key)))
    }

    /// The key of these bytes; `.mismatch` for others, or if a part's type refuses its value.
    public init(storedKey: Value) throws(StoreError) {
        do {
            parts = try Self.unpacked(storedKey)
        } catch {
            throw error as? StoreError ?? StoreError(.mismatch, "a part of a key", cause: error)
        }
    }

    private static func unpacked(_ storedKey: Value) throws -> (repeat each Part) {
        guard case .blob(let bytes) = storedKey else {
            throw StoreError.mismatch(storedKey, Self.self)
        }
        let reader = PartReader(bytes, partCount: keyType.parts.count)
        let parts = (repeat try reader.next((each Part).self))
        guard reader.isAtEnd else {
            throw StoreError(.mismatch, "a stored key has more bytes than its parts")
        }
        return parts
    }

    /// The bytes of all parts.
    ///
    /// - Parameter end: What follows the last part.
    /// - Throws: `.mismatch` if a part cannot be stored.
    func packed(end: KeyPacker.End) throws(StoreError) -> [UInt8] {
        var packer = KeyPacker()
        var partsLeft = Self.keyType.parts.count
        for part in repeat each parts { try packer.add(part, &partsLeft, end) }
        return packer.bytes
    }

    /// Whether all parts are equal.
    public static func == (left: Self, right: Self) -> Bool {
        for (left, right) in repeat (each left.parts, each right.parts) {
            guard left == right else { return false }
        }
        return true
    }

    /// Hashes all parts.
    public func hash(into hasher: inout Hasher) {
        for part in repeat each parts { hasher.combine(part) }
    }
}

extension CompositeKey: CustomStringConvertible {
    /// The parts in parentheses: `(ada, 7)`.
    public var description: String {
        var texts: [String] = []
        for part in repeat each parts { texts.append("\(part)") }
        return "(\(texts.joined(separator: ", ")))"
    }
}

extension KeyPacker {
    /// Adds a part of a composite key, which is one part or a composite itself.
    ///
    /// - Parameters:
    ///   - key: The part.
    ///   - partsLeft: How many parts are left with this one; becomes less by its own.
    ///   - end: What follows the last part.
    fileprivate mutating func add<K: BucketKey>(
        _ key: K, _ partsLeft: inout Int, _ end: End
    ) throws(StoreError) {
        let type = K.keyType
        let stored = try key.storedKey()
        var values = [stored]
        if type.isComposite {
            guard case .blob(let bytes) = stored else { throw .mismatch(stored, K.self) }
            var unpacker = KeyUnpacker(bytes)
            values = []
            for (index, part) in type.parts.enumerated() {
                values.append(try unpacker.next(part, isLast: index == type.parts.count - 1))
            }
        }
        for (value, part) in zip(values, type.parts) {
            partsLeft -= 1
            try add(value, as: part, end: partsLeft == 0 ? end : .part)
        }
    }
}

/// Reads the parts of a composite key as their types.
private final class PartReader {
    private var unpacker: KeyUnpacker
    private var partsLeft: Int

    init(_ bytes: Data, partCount: Int) {
        unpacker = KeyUnpacker(bytes)
        partsLeft = partCount
    }

    var isAtEnd: Bool { unpacker.isAtEnd }

    func next<K: BucketKey>(_ type: K.Type) throws -> K {
        let keyType = type.keyType
        var values: [Value] = []
        for part in keyType.parts {
            partsLeft -= 1
            values.append(try unpacker.next(part, isLast: partsLeft == 0))
        }
        guard keyType.isComposite else { return try K(storedKey: values[0]) }
        var packer = KeyPacker()
        for (index, part) in keyType.parts.enumerated() {
            let isLast = index == keyType.parts.count - 1
            try packer.add(values[index], as: part, end: isLast ? .key : .part)
        }
        return try K(storedKey: .blob(Data(packer.bytes)))
    }
}
