#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns any encodable value into one SQL value: its own, that of its single-value container, or
/// its JSON.
final class ScalarEncoder: Encoder, SingleValueEncodingContainer {
    private var value: Value?
    /// The kind of the last encoded value; meaningless after NULL.
    private(set) var kind = ValueKind.keyed
    /// Whether the value asked for a keyed or an unkeyed container.
    private var isStructured = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Returns the SQL value, or throws the failure of the type's own `encode(to:)`. A date counts
    /// from 2001.
    func encode<T: Encodable>(value: T) throws -> Value {
        if let date = value as? Date, T.self == Date.self {
            kind = .date
            return try date.timeIntervalSinceReferenceDate.asValue()
        }
        if let shape = ColumnShape.known(T.self), let known = value as? any ValueConvertible {
            kind = shape.kind
            return try known.asValue()
        }
        self.value = nil
        isStructured = false
        try value.encode(to: self)
        if isStructured {
            if value is any RawRepresentable, Self.shape(of: T.self)?.coding == .raw {
                isStructured = false
                return try RawValueEncoder(self).encode(value)
            }
            return .text(try JSONText.text(value))
        }
        return self.value ?? .null
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        (isStructured, kind) = (true, .keyed)
        return InertEncoder().container(keyedBy: type)
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        (isStructured, kind) = (true, .unkeyed)
        return InertEncoder().unkeyedContainer()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    // MARK: SingleValueEncodingContainer

    func encodeNil() { (value, isStructured) = (.null, false) }

    // The two methods that raw-value enums call; the generic one meets all other requirements.

    func encode(_ value: Int) {
        (self.value, kind, isStructured) = (.integer(Int64(value)), ValueKind(Int.self), false)
    }
    func encode(_ value: String) {
        (self.value, kind, isStructured) = (.text(value), ValueKind(String.self), false)
    }

    func encode<T: Encodable>(_ value: T) throws {
        let encoded = try encode(value: value)
        isStructured = false
        self.value = encoded
    }
}

extension ScalarEncoder {
    /// The column that a type needs, without a value of it.
    static func shape<T>(of type: T.Type) -> ColumnShape? {
        func decoded<D: Decodable>(_ type: D.Type) -> ColumnShape? { ColumnShape.of(type) }
        if let known = ColumnShape.known(type) { return known }
        return (type as? any Decodable.Type).flatMap { decoded($0) }
    }

    /// The column that a value needs: as its type decodes itself, or else as the value encodes
    /// itself.
    static func shape<T: Encodable>(of value: T) -> ColumnShape? {
        if let shape = shape(of: T.self) { return shape }
        let encoder = ScalarEncoder()
        guard let encoded = try? encoder.encode(value: value) else { return nil }
        if encoder.isStructured { return ColumnShape(encoder.kind) }
        return encoded.storage.map {
            ColumnShape(storage: $0, coding: .single, kind: encoder.kind)
        }
    }
}

extension Value {
    /// The storage class; `nil` for NULL.
    var storage: Storage? {
        switch self {
        case .null: nil
        case .integer: .integer
        case .real: .real
        case .text: .text
        case .blob: .blob
        }
    }
}
