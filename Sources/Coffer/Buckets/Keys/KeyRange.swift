#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A range of a bucket's keys, in the order of the stored keys.
///
/// ```swift
/// try tx.keys(in: sessions, .prefix("eu/"))
/// try tx.entries(in: readings, .from(start, below: end), order: .descending, maximumCount: 10)
/// try tx.removeAll(in: events, .starting(with: user))
/// ```
public struct KeyRange<Key: BucketKey>: Sendable {
    /// The bounds, or why a key that was given for one cannot be stored.
    let bounds: Result<KeyBounds, StoreError>

    private init(_ bounds: () throws(StoreError) -> KeyBounds) {
        self.bounds = Result(catching: bounds)
    }

    /// All keys.
    public static var all: Self { Self { KeyBounds() } }

    /// A key and those after it.
    public static func from(_ first: Key) -> Self {
        Self { () throws(StoreError) in KeyBounds(lower: try first.storedKey()) }
    }

    /// The keys before `end`.
    public static func below(_ end: Key) -> Self {
        Self { () throws(StoreError) in KeyBounds(upper: try end.storedKey()) }
    }

    /// The keys from `first`, and before `end`. None if `end` comes before `first`.
    public static func from(_ first: Key, below end: Key) -> Self {
        Self { () throws(StoreError) in
            KeyBounds(lower: try first.storedKey(), upper: try end.storedKey())
        }
    }

    /// The keys from `first` to `last`, both included.
    public static func from(_ first: Key, through last: Key) -> Self {
        Self { () throws(StoreError) in
            KeyBounds(
                lower: try first.storedKey(), upper: try last.storedKey(), includesUpper: true)
        }
    }

    /// The keys whose bytes begin with those of `prefix`; all keys for an empty one. Nothing is
    /// normalised: the prefix `e` also finds é as two scalars.
    public static func prefix(_ prefix: Key) -> Self where Key: PrefixedBucketKey {
        Self { () throws(StoreError) in
            switch try prefix.storedKey() {
            case .text(let text): KeyBounds(textPrefix: text)
            case .blob(let bytes): KeyBounds(bytePrefix: bytes)
            case let other: throw .mismatch(other, Key.self)
            }
        }
    }

    /// The composite keys whose bytes begin with those of some parts.
    private static func beginning<each First: BucketKey>(
        _ first: CompositeKey<repeat each First>, end: KeyPacker.End = .part
    ) -> Self {
        Self { () throws(StoreError) in
            KeyBounds(bytePrefix: Data(try first.packed(end: end)))
        }
    }
}

// MARK: The first parts of composite keys

extension KeyRange {
    /// The keys with this first part.
    public static func starting<A, B>(with first: A) -> Self where Key == CompositeKey<A, B> {
        beginning(CompositeKey(first))
    }

    /// The keys with this first part.
    public static func starting<A, B, C>(with first: A) -> Self
    where Key == CompositeKey<A, B, C> {
        beginning(CompositeKey(first))
    }

    /// The keys with these first two parts.
    public static func starting<A, B, C>(with first: A, _ second: B) -> Self
    where Key == CompositeKey<A, B, C> {
        beginning(CompositeKey(first, second))
    }

    /// The keys with this first part.
    public static func starting<A, B, C, D>(with first: A) -> Self
    where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first))
    }

    /// The keys with these first two parts.
    public static func starting<A, B, C, D>(with first: A, _ second: B) -> Self
    where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first, second))
    }

    /// The keys with these first three parts.
    public static func starting<A, B, C, D>(with first: A, _ second: B, _ third: C) -> Self
    where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first, second, third))
    }

    /// The keys whose first part begins with a text or bytes.
    public static func starting<A: PrefixedBucketKey, B>(withPrefix prefix: A) -> Self
    where Key == CompositeKey<A, B> {
        beginning(CompositeKey(prefix), end: .anything)
    }

    /// The keys whose first part begins with a text or bytes.
    public static func starting<A: PrefixedBucketKey, B, C>(withPrefix prefix: A) -> Self
    where Key == CompositeKey<A, B, C> {
        beginning(CompositeKey(prefix), end: .anything)
    }

    /// The keys whose first part begins with a text or bytes.
    public static func starting<A: PrefixedBucketKey, B, C, D>(withPrefix prefix: A) -> Self
    where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(prefix), end: .anything)
    }

    /// The keys with this first part, whose second part begins with a text or bytes.
    public static func starting<A, B: PrefixedBucketKey>(with first: A, prefix: B) -> Self
    where Key == CompositeKey<A, B> {
        beginning(CompositeKey(first, prefix), end: .key)
    }

    /// The keys with this first part, whose second part begins with a text or bytes.
    public static func starting<A, B: PrefixedBucketKey, C>(with first: A, prefix: B) -> Self
    where Key == CompositeKey<A, B, C> {
        beginning(CompositeKey(first, prefix), end: .anything)
    }

    /// The keys with this first part, whose second part begins with a text or bytes.
    public static func starting<A, B: PrefixedBucketKey, C, D>(with first: A, prefix: B) -> Self
    where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first, prefix), end: .anything)
    }

    /// The keys with these first two parts, whose third part begins with a text or bytes.
    public static func starting<A, B, C: PrefixedBucketKey>(
        with first: A, _ second: B, prefix: C
    ) -> Self where Key == CompositeKey<A, B, C> {
        beginning(CompositeKey(first, second, prefix), end: .key)
    }

    /// The keys with these first two parts, whose third part begins with a text or bytes.
    public static func starting<A, B, C: PrefixedBucketKey, D>(
        with first: A, _ second: B, prefix: C
    ) -> Self where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first, second, prefix), end: .anything)
    }

    /// The keys with these first three parts, whose fourth part begins with a text or bytes.
    public static func starting<A, B, C, D: PrefixedBucketKey>(
        with first: A, _ second: B, _ third: C, prefix: D
    ) -> Self where Key == CompositeKey<A, B, C, D> {
        beginning(CompositeKey(first, second, third, prefix), end: .key)
    }
}

/// The stored keys between which a range lies.
struct KeyBounds: Sendable {
    /// The first key; `nil` for no bound.
    var lower: Value?
    /// The key before which the range ends, or with which; `nil` for no bound.
    var upper: Value?
    var includesUpper = false
    /// The text that all keys begin with, for files whose texts are not ordered by UTF-8.
    private(set) var textPrefix: String?
}

extension KeyBounds {
    /// The texts that begin with a prefix; all keys for an empty one.
    init(textPrefix prefix: String) {
        self.init()
        guard !prefix.isEmpty else { return }
        lower = .text(prefix)
        upper = prefix.endOfPrefix.map { .text($0) }
        textPrefix = prefix
    }

    /// The bytes that begin with a prefix; all keys for an empty one.
    init(bytePrefix prefix: Data) {
        self.init()
        guard !prefix.isEmpty else { return }
        lower = .blob(prefix)
        var bytes = Array(prefix)
        while let last = bytes.popLast() {
            guard last < 0xff else { continue }
            upper = .blob(Data(bytes + [last + 1]))
            return
        }
    }
}

extension String {
    /// The first text, in the order of scalars, after all that begin with this one; `nil` if it
    /// consists of the last scalar alone.
    fileprivate var endOfPrefix: String? {
        var scalars = unicodeScalars
        while let last = scalars.popLast() {
            guard last.value < 0x10_ffff else { continue }
            // Surrogates are no scalars.
            let next = last.value == 0xd7ff ? 0xe000 : last.value + 1
            guard let scalar = Unicode.Scalar(next) else { return nil }
            scalars.append(scalar)
            return String(scalars)
        }
        return nil
    }
}
