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

    /// - Parameter depth: How many enums with payloads enclose the value.
    static func make<T: Decodable>(
        _ type: T.Type, _ variant: Variant, depth: Int = 0
    ) throws -> T {
        if let known = known(type, variant) as? T { return known }
        if let type = type as? any Exemplified.Type, variant == .first,
            let example = type.example as? T
        {
            return example
        }
        if let cases = type as? any CaseIterable.Type, let found = pick(cases, variant) as? T {
            return found
        }
        return try decode(type, variant, depth)
    }

    /// Decodes the type from placeholders. Tries the cases of an enum until one can be made.
    private static func decode<T: Decodable>(
        _ type: T.Type, _ variant: Variant, _ depth: Int
    ) throws -> T {
        var number = variant.rawValue
        while true {
            let choice = CaseChoice(number: number, depth: depth)
            do {
                return try T(from: ShapeProbe(variant: variant, choice: choice))
            } catch {
                number += 1
                if choice.isMade { continue }
                // The type asks for the name of a case, such as a raw value, and nobody knows it.
                guard let made = EnumCases.make(type, number: variant.rawValue) else { throw error }
                return made
            }
        }
    }

    /// Returns the first variant that can be made: an enum may start at 1, a `Character` is never
    /// empty.
    static func makeAny<T: Decodable>(_ type: T.Type, depth: Int = 0) throws -> (T, Variant) {
        if let value = try? make(type, .first, depth: depth) { return (value, .first) }
        return (try make(type, .second, depth: depth), .second)
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

/// The case that an enum with payloads gets, if a type asks for the keys of its container.
final class CaseChoice {
    /// Enums that enclose each other end at this depth, so that a recursive enum ends.
    private static let maximumDepth = 3

    private let number: Int
    private let depth: Int
    /// Whether a type has asked for a key, and got one.
    private(set) var isMade = false

    init(number: Int, depth: Int) {
        (self.number, self.depth) = (number, depth)
    }

    /// The key that names the case; `nil` if keys are not an enum, or there are no more cases.
    func key<Key: CodingKey>(_ type: Key.Type) -> Key? {
        guard depth < Self.maximumDepth, let key = EnumCases.make(type, number: number) else {
            return nil
        }
        isMade = true
        return key
    }

    /// The depth of the values in the container.
    var depthInside: Int { isMade ? depth + 1 : depth }
}
