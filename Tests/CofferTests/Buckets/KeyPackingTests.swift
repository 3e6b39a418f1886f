import Foundation
import Testing

@testable import Coffer

@Suite struct KeyPackingTests {
    /// Composite keys of one shape, packed by `Tests/Vectors/buckets.py`, in their order.
    private struct Shape: Decodable, Sendable, CustomTestStringConvertible {
        let types: [String]
        let keys: [Key]

        struct Key: Decodable, Sendable {
            let parts: [Part]
            let bytes: String
        }

        var testDescription: String { types.joined(separator: ", ") }
    }

    /// One part as JSON has it: its type says how to read it.
    private struct Part: Decodable, Sendable {
        var text: String?
        var integer: Int64?
        var unsigned: UInt64?
        var real: Double?
        var bool: Bool?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            text = try? container.decode(String.self)
            integer = try? container.decode(Int64.self)
            unsigned = try? container.decode(UInt64.self)
            real = try? container.decode(Double.self)
            bool = try? container.decode(Bool.self)
        }

        func value(_ type: BucketKeyType.Part) throws -> Value {
            switch type {
            case .text: .text(try #require(text))
            case .integer: .integer(try #require(integer))
            case .bool: .integer(try #require(bool as Bool?) ? 1 : 0)
            case .unsigned: try #require(unsigned).storedKey()
            case .date: .real(try #require(real))
            case .uuid: try #require(text.flatMap { UUID(uuidString: $0) }).storedKey()
            case .bytes: .blob(Data(try KeyVectors.bytes(hex: text ?? "?")))
            }
        }
    }

    private static let shapes: [Shape] = KeyVectors.decode("buckets.json") ?? []

    @Test func `there are vectors`() {
        #expect(Self.shapes.count == 6)
    }

    @Test(arguments: shapes)
    private func `keys have the bytes that another program computes, and come back`(
        shape: Shape
    ) throws {
        let name = "(\(shape.types.joined(separator: ", ")))"
        let type = try #require(BucketKeyType(named: name))
        for key in shape.keys {
            let values = try zip(key.parts, type.parts).map { try $0.value($1) }
            let bytes = try KeyVectors.bytes(hex: key.bytes)
            var packer = KeyPacker()
            for (index, part) in type.parts.enumerated() {
                let isLast = index == type.parts.count - 1
                try packer.add(values[index], as: part, end: isLast ? .key : .part)
            }
            #expect(packer.bytes == bytes)
            var unpacker = KeyUnpacker(Data(bytes))
            for (index, part) in type.parts.enumerated() {
                let isLast = index == type.parts.count - 1
                #expect(try unpacker.next(part, isLast: isLast) == values[index])
            }
            #expect(unpacker.isAtEnd)
        }
    }
}
