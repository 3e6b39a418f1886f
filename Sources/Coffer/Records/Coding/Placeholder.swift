#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Values that replace those of a row while a type is reflected.
///
/// Each type has two variants, if it has two values. So reflection can change one column and see
/// which property changes.
enum Placeholder {
    enum Variant: Int {
        case first
        case second

        var other: Variant { self == .first ? .second : .first }
    }

    /// The error for a type that cannot be made from placeholders.
    struct Impossible: Error {}

    static func make<T: Decodable>(_ type: T.Type, _ variant: Variant) throws -> T {
        if let known = known(type, variant) as? T { return known }
        if let cases = type as? any CaseIterable.Type, let found = pick(cases, variant) as? T {
            return found
        }
        return try T(from: ShapeProbe(variant: variant))
    }

    /// Returns the first variant that can be made: an enum may start at 1, a `Character` is never
    /// empty.
    static func makeAny<T: Decodable>(_ type: T.Type) throws -> (T, Variant) {
        if let value = try? make(type, .first) { return (value, .first) }
        return (try make(type, .second), .second)
    }

    private static func known(_ type: Any.Type, _ variant: Variant) -> Any? {
        let number = variant.rawValue
        switch type {
        case is Bool.Type: return number == 1
        case is Double.Type: return Double(number)
        case is Float.Type: return Float(number)
        case is String.Type: return number == 0 ? "" : "1"
        case is Date.Type: return Date(timeIntervalSince1970: Double(number))
        case is Data.Type: return Data(repeating: 1, count: number)
        case is [UInt8].Type: return [UInt8](repeating: 1, count: number)
        case is UUID.Type:
            let byte = UInt8(number)
            return UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte))
        case is URL.Type: return URL(string: "placeholder:\(number)")
        case is Decimal.Type: return Decimal(number)
        default: return integer(type, number)
        }
    }

    private static func integer(_ type: Any.Type, _ number: Int) -> Any? {
        guard ColumnShape.known(type)?.storage == .integer else { return nil }
        return (type as? any FixedWidthInteger.Type)?.init(number)
    }

    private static func pick<C: CaseIterable>(_ type: C.Type, _ variant: Variant) -> Any? {
        switch variant {
        case .first: C.allCases.first
        case .second: C.allCases.dropFirst().first
        }
    }
}
