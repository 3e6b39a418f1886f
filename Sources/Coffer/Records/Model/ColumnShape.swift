#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a Swift value becomes a column's value.
enum ColumnCoding: UInt8, Sendable {
    /// A number, Bool or String: the containers have a method for each.
    case primitive
    case date
    case data
    case uuid
    /// `[UInt8]`, as a blob.
    case bytes
    case url
    case decimal
    /// The value that the type encodes in its single-value container.
    case single
    /// The value that a `RawRepresentable` type encodes under the key `rawValue`, alone.
    case raw
    /// As `single`, or left in the file: see `Lazy`. Only of types, never of columns.
    case lazy
    /// Any other encoding, as JSON text.
    case json
}

/// The kind of value inside all wrappers: a type that Coffer knows by name, or a container.
struct ValueKind: Hashable, Sendable {
    private enum Keyed {}
    private enum Unkeyed {}

    private let id: ObjectIdentifier

    init(_ type: Any.Type) {
        id = ObjectIdentifier(type)
    }

    static var date: Self { Self(Date.self) }
    static var data: Self { Self(Data.self) }
    static var bytes: Self { Self([UInt8].self) }
    static var decimal: Self { Self(Decimal.self) }
    static let keyed = Self(Keyed.self)
    static let unkeyed = Self(Unkeyed.self)

    /// Whether stored values sort as the Swift values do.
    var isOrdered: Bool {
        self != .keyed && self != .unkeyed && self != Self(Decimal.self)
    }
}

/// The column that a Swift type needs.
struct ColumnShape: Sendable, Equatable {
    var storage: Storage
    var coding: ColumnCoding
    var isNullable = false
    let kind: ValueKind

    init(storage: Storage, coding: ColumnCoding, kind: ValueKind) {
        (self.storage, self.coding, self.kind) = (storage, coding, kind)
    }

    /// The shape of a type that encodes a single value of this shape.
    var wrapped: ColumnShape {
        var shape = self
        shape.coding = .single
        return shape
    }

    /// The shape of a value that a type encodes piece by piece, in nested containers.
    static let tree = Self(.keyed)

    /// The shape of a container of values.
    init(_ kind: ValueKind) {
        self.init(storage: .text, coding: .json, kind: kind)
    }

    /// The shape of a type that Coffer knows by name.
    static func known(_ type: Any.Type) -> ColumnShape? {
        func shape(_ storage: Storage, _ coding: ColumnCoding) -> ColumnShape {
            ColumnShape(storage: storage, coding: coding, kind: ValueKind(type))
        }
        if let storage = primitive(type) { return shape(storage, .primitive) }
        switch type {
        case is Date.Type: return shape(.real, .date)
        case is Data.Type: return shape(.blob, .data)
        case is UUID.Type: return shape(.blob, .uuid)
        case is [UInt8].Type: return shape(.blob, .bytes)
        case is URL.Type: return shape(.text, .url)
        case is Decimal.Type: return shape(.text, .decimal)
        default: return nil
        }
    }

    private static func primitive(_ type: Any.Type) -> Storage? {
        switch type {
        case is Bool.Type, is Int.Type, is Int64.Type, is Int32.Type, is Int16.Type, is Int8.Type,
            is UInt.Type, is UInt64.Type, is UInt32.Type, is UInt16.Type, is UInt8.Type:
            .integer
        case is Double.Type, is Float.Type: .real
        case is String.Type: .text
        default: nil
        }
    }

    /// The shape of any type. An unknown type's own `init(from:)` runs, to see which container it
    /// requests. A type that requests none has no properties, and is an empty container. `nil` if
    /// the type throws before it requests one.
    static func of<T: Decodable>(_ type: T.Type) -> ColumnShape? {
        if let known = known(type) { return known }
        let probe = ShapeProbe(variant: .first)
        // An error does not matter here: only the requested container counts.
        let isMade = (try? T(from: probe)) != nil
        guard var shape = probe.shape ?? (isMade ? tree : nil) else { return nil }
        if let raw = probe.rawValueShape, type is any RawRepresentable.Type {
            shape = raw
            shape.coding = .raw
        }
        shape.isNullable = shape.isNullable || probe.askedForNil
        return shape
    }
}
