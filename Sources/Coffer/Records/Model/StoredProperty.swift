import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A stored property of a record that is read and written directly in memory.
struct StoredProperty: Sendable {
    /// The types whose values need no coder.
    enum Kind: UInt8, Sendable {
        case int, int8, int16, int32, int64
        case uint, uint8, uint16, uint32, uint64
        case bool, double, float
        case string, data, bytes, date, uuid
        /// Any other `Codable`, which a coder encodes and decodes.
        case coded
    }

    let kind: Kind
    /// Whether the property is an `Optional` of that type.
    let isOptional: Bool
    /// Bytes from the beginning of the record.
    let offset: Int
    /// The position of its column in the row that is read; negative if the row lacks it.
    var column: Int32
    /// The position of the bound column and its storage, as `position << 2 | storage`.
    let entry: Int32

    static func kind(of type: Any.Type) -> Kind {
        switch type {
        case is Int.Type: .int
        case is Int8.Type: .int8
        case is Int16.Type: .int16
        case is Int32.Type: .int32
        case is Int64.Type: .int64
        case is UInt.Type: .uint
        case is UInt8.Type: .uint8
        case is UInt16.Type: .uint16
        case is UInt32.Type: .uint32
        case is UInt64.Type: .uint64
        case is Bool.Type: .bool
        case is Double.Type: .double
        case is Float.Type: .float
        case is String.Type: .string
        case is Data.Type: .data
        case is [UInt8].Type: .bytes
        case is Date.Type: .date
        case is UUID.Type: .uuid
        default: .coded
        }
    }

    // All these methods require that `place` points to a property of this kind. `StoredProperties`
    // ensures that: it was made from the type's own layout, which adds up to the type's size.

    // MARK: Writing

    /// The value, or `nil`, for which nothing is bound. Columns without a value become NULL.
    @inline(__always)
    private func load<T>(_ type: T.Type, _ place: UnsafeRawPointer) -> T? {
        isOptional
            ? place.assumingMemoryBound(to: T?.self).pointee
            : place.assumingMemoryBound(to: T.self).pointee
    }

    @inline(__always)
    private func bind<T: FixedWidthInteger>(
        _ type: T.Type, _ place: UnsafeRawPointer, _ state: UnsafeMutablePointer<BindingState>
    ) throws {
        guard let value = load(type, place) else { return }
        guard let integer = Int64(exactly: value) else {
            throw state.pointee.encoder.failure(StoreError.outOfRange(Int64.self), entry >> 2)
        }
        try state.pointee.bind(integer, entry)
    }

    @inline(__always)
    func bind(
        _ place: UnsafeRawPointer, _ state: UnsafeMutablePointer<BindingState>
    ) throws {
        switch kind {
        case .int: try bind(Int.self, place, state)
        case .int8: try bind(Int8.self, place, state)
        case .int16: try bind(Int16.self, place, state)
        case .int32: try bind(Int32.self, place, state)
        case .int64: try bind(Int64.self, place, state)
        case .uint: try bind(UInt.self, place, state)
        case .uint8: try bind(UInt8.self, place, state)
        case .uint16: try bind(UInt16.self, place, state)
        case .uint32: try bind(UInt32.self, place, state)
        case .uint64: try bind(UInt64.self, place, state)
        case .bool:
            guard let value = load(Bool.self, place) else { return }
            try state.pointee.bind(value ? 1 : 0 as Int64, entry)
        case .double:
            if let value = load(Double.self, place) { try state.pointee.bind(value, entry) }
        case .float:
            if let value = load(Float.self, place) { try state.pointee.bind(Double(value), entry) }
        case .string:
            if let value = load(String.self, place) { try state.pointee.bind(value, entry) }
        case .data:
            if let value = load(Data.self, place) { try state.pointee.bind(value, entry) }
        case .bytes:
            guard let value = load([UInt8].self, place) else { return }
            try value.withUnsafeBytes { try state.pointee.bindBlob($0, entry: entry) }
        case .date:
            if let value = load(Date.self, place) { try state.pointee.bind(value, entry) }
        case .uuid:
            guard let value = load(UUID.self, place) else { return }
            try withUnsafeBytes(of: value.uuid) {
                try state.pointee.bindBlob($0, entry: entry)
            }
        case .coded: break
        }
    }

    // MARK: Reading

    @inline(__always)
    private func make<T>(
        _ place: UnsafeMutableRawPointer, _ value: OpaquePointer?, _ make: () throws -> T
    ) throws {
        guard isOptional else {
            return place.assumingMemoryBound(to: T.self).initialize(to: try make())
        }
        let isNull = sqlite3_value_type(value) == SQLITE_NULL
        place.assumingMemoryBound(to: T?.self).initialize(to: isNull ? nil : try make())
    }

    @inline(__always)
    private func make<T: FixedWidthInteger>(
        _ type: T.Type, _ place: UnsafeMutableRawPointer, _ value: OpaquePointer?, _ row: RowState
    ) throws {
        try make(place, value) { try row.integer(value, column, as: type) }
    }

    /// Initialises the property from a column's value; if that throws, it is not initialised.
    @inline(__always)
    func initialize(
        _ place: UnsafeMutableRawPointer, _ value: OpaquePointer?,
        _ state: UnsafePointer<RowState>
    ) throws {
        switch kind {
        case .int: try make(Int.self, place, value, state.pointee)
        case .int8: try make(Int8.self, place, value, state.pointee)
        case .int16: try make(Int16.self, place, value, state.pointee)
        case .int32: try make(Int32.self, place, value, state.pointee)
        case .int64: try make(Int64.self, place, value, state.pointee)
        case .uint: try make(UInt.self, place, value, state.pointee)
        case .uint8: try make(UInt8.self, place, value, state.pointee)
        case .uint16: try make(UInt16.self, place, value, state.pointee)
        case .uint32: try make(UInt32.self, place, value, state.pointee)
        case .uint64: try make(UInt64.self, place, value, state.pointee)
        case .bool: try make(place, value) { try state.pointee.bool(value, column) }
        case .double:
            try make(place, value) { try state.pointee.real(value, column, for: Double.self) }
        case .float: try make(place, value) { try state.pointee.float(value, column) }
        case .string: try make(place, value) { try state.pointee.text(value, column) }
        case .data: try make(place, value) { try state.pointee.data(value, column) }
        case .bytes: try make(place, value) { try state.pointee.bytes(value, column) }
        case .date: try make(place, value) { try state.pointee.date(value, column) }
        case .uuid: try make(place, value) { try state.pointee.uuid(value, column) }
        case .coded: break
        }
    }

    /// Initialises the property to `nil`, for a column that the row lacks.
    func initializeToNil(_ place: UnsafeMutableRawPointer) {
        func set<T>(_ type: T.Type) {
            place.assumingMemoryBound(to: T?.self).initialize(to: nil)
        }
        switch kind {
        case .int: set(Int.self)
        case .int8: set(Int8.self)
        case .int16: set(Int16.self)
        case .int32: set(Int32.self)
        case .int64: set(Int64.self)
        case .uint: set(UInt.self)
        case .uint8: set(UInt8.self)
        case .uint16: set(UInt16.self)
        case .uint32: set(UInt32.self)
        case .uint64: set(UInt64.self)
        case .bool: set(Bool.self)
        case .double: set(Double.self)
        case .float: set(Float.self)
        case .string: set(String.self)
        case .data: set(Data.self)
        case .bytes: set([UInt8].self)
        case .date: set(Date.self)
        case .uuid: set(UUID.self)
        case .coded: break
        }
    }

    /// Deinitialises the property's value.
    func deinitialize(_ place: UnsafeMutableRawPointer) {
        func end<T>(_ type: T.Type) {
            if isOptional {
                place.assumingMemoryBound(to: T?.self).deinitialize(count: 1)
            } else {
                place.assumingMemoryBound(to: T.self).deinitialize(count: 1)
            }
        }
        switch kind {
        case .string: end(String.self)
        case .data: end(Data.self)
        case .bytes: end([UInt8].self)
        // Values of the other kinds are trivial; a coder deinitialises `coded` ones.
        default: break
        }
    }
}
