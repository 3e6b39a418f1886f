import Foundation
import Testing

/// Changes bytes of a closed file. A test that holds the file open damages it from outside the
/// process only: see the descriptor rule in DESIGN.md.
enum Damage {
    static func flip(_ path: String, at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 1]))
    }

    /// What a crash leaves where a block was allocated and never written.
    static func zero(_ path: String, at offset: Int, count: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data(repeating: 0, count: count))
    }

    static func truncate(_ path: String, to byteCount: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.truncate(atOffset: UInt64(byteCount))
    }

    static func byteCount(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }
}
