import Foundation
import Testing

/// A `sqlcipher` shell: the program that users of other languages have.
struct Shell: Sendable, CustomTestStringConvertible {
    /// 3 or 4.
    let majorVersion: Int
    private let path: String

    var testDescription: String { "the shell of SQLCipher \(majorVersion)" }

    /// The system's shell and that of SQLCipher 4; only one if the system's is a 4.x.
    static let all: [Shell] = {
        var shells: [Shell] = []
        for path in candidates where FileManager.default.isExecutableFile(atPath: path) {
            let unknown = Shell(majorVersion: 0, path: path)
            guard let version = try? unknown.run("PRAGMA cipher_version;"),
                let major = version.first?.first?.wholeNumberValue,
                !shells.contains(where: { $0.majorVersion == major })
            else { continue }
            shells.append(Shell(majorVersion: major, path: path))
        }
        return shells
    }()

    /// Whether the shells suffice for everything that must be tested.
    static var isComplete: Bool { all.contains { $0.majorVersion == 4 } }

    private static let candidates: [String] = {
        let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return folders.split(separator: ":").map { "\($0)/sqlcipher" }
            + [Repository.root.appending(path: ".build-sqlcipher4/usr/bin/sqlcipher").path]
    }()

    /// Feeds lines to the shell, keys among them, and returns what it prints.
    func run(_ script: String, on database: String = ":memory:") throws -> [String] {
        BrokenPipe.isError()
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = ["-batch", "-bail", database]
        // Each shell finds its own library.
        var environment = ProcessInfo.processInfo.environment
        environment["LD_LIBRARY_PATH"] = nil
        environment["HOME"] = "/nonexistent"
        process.environment = environment
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(script.utf8))
        try input.fileHandleForWriting.close()
        let printed = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: printed, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
