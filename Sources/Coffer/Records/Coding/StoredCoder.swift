import CSQLCipher

/// Reads and writes a stored property through `Codable`, for a type without a kind of its own in
/// `StoredProperty.Kind`.
protocol StoredCoder: Sendable {
    /// Binds the value at an address; `nil` binds nothing.
    func bind(_ place: UnsafeRawPointer, _ entry: Int32, _ encoder: RowEncoder) throws
    /// Initialises the value at an address; if that throws, the memory stays uninitialised. A
    /// negative column means that the row lacks it and that the property is an optional.
    func initialize(_ place: UnsafeMutableRawPointer, _ column: Int32, _ decoder: RowDecoder) throws
    func deinitialize(_ place: UnsafeMutableRawPointer)
}

struct PropertyCoder<T: Codable>: StoredCoder {
    func bind(_ place: UnsafeRawPointer, _ entry: Int32, _ encoder: RowEncoder) throws {
        try encoder.encode(other: place.assumingMemoryBound(to: T.self).pointee, entry)
    }

    func initialize(
        _ place: UnsafeMutableRawPointer, _ column: Int32, _ decoder: RowDecoder
    ) throws {
        let value = try decoder.decode(other: T.self, column)
        place.assumingMemoryBound(to: T.self).initialize(to: value)
    }

    func deinitialize(_ place: UnsafeMutableRawPointer) {
        place.assumingMemoryBound(to: T.self).deinitialize(count: 1)
    }
}

struct OptionalPropertyCoder<T: Codable>: StoredCoder {
    func bind(_ place: UnsafeRawPointer, _ entry: Int32, _ encoder: RowEncoder) throws {
        guard let value = place.assumingMemoryBound(to: T?.self).pointee else { return }
        try encoder.encode(other: value, entry)
    }

    func initialize(
        _ place: UnsafeMutableRawPointer, _ column: Int32, _ decoder: RowDecoder
    ) throws {
        let isNil = column < 0 || decoder.state.pointee.isNull(column)
        let value = isNil ? nil : try decoder.decode(other: T.self, column)
        place.assumingMemoryBound(to: T?.self).initialize(to: value)
    }

    func deinitialize(_ place: UnsafeMutableRawPointer) {
        place.assumingMemoryBound(to: T?.self).deinitialize(count: 1)
    }
}

/// Access to an optional whose type is known only at run time.
protocol OptionalValue {
    static var wrapped: Any.Type { get }
    var isNil: Bool { get }
}

extension Optional: OptionalValue {
    static var wrapped: Any.Type { Wrapped.self }
    var isNil: Bool { self == nil }
}
