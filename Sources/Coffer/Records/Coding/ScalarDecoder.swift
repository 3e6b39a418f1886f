#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes a Swift value from one SQL value, for types that decode themselves from a single value.
final class ScalarDecoder: Decoder, SingleValueDecodingContainer {
    private let value: Value
    /// Whether a number that is decoded as a date counts from 2001 rather than 1970.
    private let countingFrom2001: Bool
    /// The first failure, for a type that goes on to ask for a container.
    private var failure: StoreError?

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: Value, countingFrom2001: Bool) {
        self.value = value
        self.countingFrom2001 = countingFrom2001
    }

    /// The first failure, or else the error for a container that the type did not ask for when it
    /// was reflected.
    private func refuse() -> StoreError {
        failure
            ?? StoreError(
                .mismatch, "the type asks for a single value first and for a container later")
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw refuse()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw refuse() }
    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value == .null }

    // The two methods that raw-value enums call; the generic one meets all other requirements.

    func decode(_ type: Int.Type) throws -> Int { try explained(type) { try Int(value) } }
    func decode(_ type: String.Type) throws -> String { try explained(type) { try String(value) } }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        // Frequent types go without casts; equal types have the same bits.
        if type == Int.self { return unsafeBitCast(try decode(Int.self), to: type) }
        if type == String.self { return unsafeBitCast(try decode(String.self), to: type) }
        if type == Double.self {
            return unsafeBitCast(try explained(type) { try Double(value) }, to: type)
        }
        if type == Date.self, countingFrom2001 {
            let seconds = try explained(type) { try Double(value) }
            return unsafeBitCast(Date(timeIntervalSinceReferenceDate: seconds), to: type)
        }
        if ColumnShape.known(type) != nil, let known = type as? any ValueConvertible.Type {
            return try explained(type) {
                guard let made = try known.init(value) as? T else {
                    throw StoreError.mismatch(value, type)
                }
                return made
            }
        }
        switch ColumnShape.of(type)?.coding {
        case .json: break
        case .raw: return try T(from: RawValueDecoder(scalar: self))
        default: return try T(from: self)
        }
        guard case .text(let json) = value else {
            return try explained(type) { throw StoreError.mismatch(value, type) }
        }
        return try JSONText.decode(type, from: Data(json.utf8))
    }

    /// Turns errors into `DecodingError`, because a type that tries one kind of value after the
    /// other may catch only that.
    @inline(__always)
    private func explained<T>(_ type: Any.Type, _ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch {
            throw codingError(error, type)
        }
    }

    @inline(never)
    private func codingError(_ error: any Error, _ type: Any.Type) -> DecodingError {
        let known = error as? StoreError
        failure = failure ?? known
        // The message names types and storage classes, never the value.
        let context = DecodingError.Context(
            codingPath: [], debugDescription: known?.message ?? "", underlyingError: error)
        if value == .null { return .valueNotFound(type, context) }
        // The storage class is right but the value is not: out of range, not a UUID, not a number.
        let isOfKind = ColumnShape.known(type)?.storage.sqlType == "\(value.storageClass)"
        return isOfKind ? .dataCorrupted(context) : .typeMismatch(type, context)
    }
}
