#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Rows of values with which a record type is tried: the ends of ranges, texts and bytes of several
/// lengths, and no two columns alike in all rows, so that an exchange shows.
struct StoredSamples {
    private(set) var rows: [[Value]] = []

    /// - Parameter coded: A value for each column whose property has a coder.
    init(_ stored: StoredProperties, _ columnCount: Int, coded: [Value]) {
        // The last rows have the bits of the columns' numbers, so that no two Bools are alike.
        for round in 0..<3 + (Int.bitWidth - columnCount.leadingZeroBitCount) {
            var row = coded
            for property in stored.properties where property.kind != .coded {
                row[Int(property.column)] = Self.value(
                    property.kind, round, Int(property.column))
            }
            rows.append(row)
        }
    }

    private static func value(
        _ kind: StoredProperty.Kind, _ round: Int, _ column: Int
    ) -> Value {
        switch kind {
        case .int, .int64: integer(Int64.self, round, column)
        case .int8: integer(Int8.self, round, column)
        case .int16: integer(Int16.self, round, column)
        case .int32: integer(Int32.self, round, column)
        case .uint, .uint64: integer(UInt64.self, round, column)
        case .uint8: integer(UInt8.self, round, column)
        case .uint16: integer(UInt16.self, round, column)
        case .uint32: integer(UInt32.self, round, column)
        case .bool: .integer(Int64(round < 3 ? round & 1 : column >> (round - 3) & 1))
        case .double: .real(round == 0 ? 1e300 : Double(column) / 3 - Double(round))
        // Fractions that both hold exactly.
        case .float, .date: .real(Double(column) * 4 + Double(round) - 1.25)
        case .string: .text(text(round, column))
        case .data, .bytes: .blob(Data(text(round, column).utf8))
        case .uuid: .blob(Data(repeating: UInt8(round), count: 15) + [UInt8(column & 0xff)])
        case .coded: .null
        }
    }

    private static func integer<T: FixedWidthInteger>(
        _ type: T.Type, _ round: Int, _ column: Int
    ) -> Value {
        switch round {
        case 0: .integer(Int64(clamping: T.max))
        case 1: .integer(Int64(T.min))
        default: .integer(Int64(T(truncatingIfNeeded: column + 1) & T.max >> 1))
        }
    }

    private static func text(_ round: Int, _ column: Int) -> String {
        switch round {
        case 0: ""
        case 1: " Ää\u{0}\u{65}\u{301} \(column)\n"
        default: "A text that is longer than fifteen Bytes, \(round) \(column)"
        }
    }
}
