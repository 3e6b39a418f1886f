#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Rows of sample values for the trial of a record type. They hold the ends of ranges, zeros, texts
/// and bytes of several lengths, and NULL wherever it is allowed. In up to 64 columns without a
/// coder, no two are alike in all rows, so that an exchange shows.
struct StoredSamples {
    private(set) var rows: [[Value]] = []
    /// Rows that every type has to refuse: NULL where a property cannot hold it.
    private(set) var refused: [[Value]] = []

    /// - Parameter coded: A value for each column whose property has a coder.
    init(_ stored: StoredProperties, _ columnCount: Int, coded: [Value]) {
        // In the last rows a Bool holds one bit of its column's number, so no two Bools are alike.
        for round in 0..<3 + (Int.bitWidth - columnCount.leadingZeroBitCount) {
            var row = coded
            for property in stored.properties where property.kind != .coded {
                row[Int(property.column)] = Self.value(
                    property.kind, round, Int(property.column))
            }
            rows.append(row)
        }
        addZeros(stored)
        addNulls(stored)
    }

    private mutating func addZeros(_ stored: StoredProperties) {
        guard var row = rows.last else { return }
        for property in stored.properties where property.kind != .coded {
            switch row[Int(property.column)] {
            case .integer: row[Int(property.column)] = .integer(0)
            case .real: row[Int(property.column)] = .real(0)
            default: break
            }
        }
        rows.append(row)
    }

    private mutating func addNulls(_ stored: StoredProperties) {
        guard let whole = rows.last else { return }
        var allNull = whole
        for property in stored.properties {
            var row = whole
            row[Int(property.column)] = .null
            if property.isOptional {
                allNull[Int(property.column)] = .null
                rows.append(row)
            } else {
                refused.append(row)
            }
        }
        rows.append(allNull)
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
        case .double: .real(round == 0 ? 1e300 : (Double(column) + 0.1) / 3 - Double(round))
        // The types hold these fractions exactly. A date's fraction goes below a microsecond.
        case .float: .real(Double(column) * 4 + Double(round) - 1.25)
        case .date: .real(Double(column) * 4 + Double(round) - 1.25 + 1 / 1_048_576)
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
        case 2: String(repeating: "A long text, ", count: 80) + "\(column)"
        default: "A text that is longer than fifteen Bytes, \(round) \(column)"
        }
    }
}
