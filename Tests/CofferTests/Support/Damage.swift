import Foundation
import Testing

/// Changes bytes of a closed file. A test that has the file open must damage it from another
/// process: see the descriptor rule in DESIGN.md.
enum Damage {
    static func flip(_ path: String, at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data([byte ^ 1]))
    }

    /// Writes zeros, as a crash leaves them where a block was allocated and never written.
    static func zero(_ path: String, at offset: Int, count: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data(repeating: 0, count: count))
    }

    /// Changes bytes of a file that this process has open, in another process.
    static func overwriteFromOutside(_ path: String, at offset: Int) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        // Eight bytes; they certainly differ from the bytes before.
        let script = "printf damaged! | dd of=\"$1\" bs=1 seek=$2 conv=notrunc 2>/dev/null"
        process.arguments = ["-c", script, "sh", path, "\(offset)"]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    /// Overwrites the start of a file that another process has open with zeros.
    static func blankFromOutside(_ path: String, byteCount: Int) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/dd")
        process.arguments = [
            "if=/dev/zero", "of=\(path)", "bs=\(byteCount)", "count=1", "conv=notrunc",
            "status=none",
        ]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    static func append(_ path: String, byteCount: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seekToEnd()
        try file.write(contentsOf: [UInt8](repeating: 7, count: byteCount))
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
