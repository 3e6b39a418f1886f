#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How records and buckets write a `Codable` value that no single SQL value can hold.
enum JSONText {
    // Configured here and never again, so that all threads may use them.
    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        // Equal values give equal bytes: SQLite then leaves the page clean.
        encoder.outputFormatting = .sortedKeys
        return encoder
    }()
    private static let decoder = JSONDecoder()

    static func data<T: Encodable>(_ value: T) throws -> Data {
        try encoder.encode(value)
    }

    static func text<T: Encodable>(_ value: T) throws -> String {
        String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
        try decoder.decode(type, from: data)
    }
}
