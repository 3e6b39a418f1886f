import Foundation
import Testing

@testable import Coffer

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

    /// The statements that open a file.
    ///
    /// - Parameter key: The key as SQL.
    func pragmas(key: String, _ profile: CipherProfile) -> String {
        let hash = profile.hash == .sha512 ? "SHA512" : "SHA1"
        let settings =
            majorVersion < 4
            ? ""
            : """
            PRAGMA cipher_hmac_algorithm = HMAC_\(hash);
            PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_\(hash);
            """
        return """
            PRAGMA key = \(key);
            PRAGMA cipher_page_size = \(profile.pageByteCount);
            PRAGMA kdf_iter = \(profile.roundCount);
            \(settings)

            """
    }

    /// Feeds lines to the shell, keys among them, and returns what it prints.
    func run(_ script: String, on database: String = ":memory:") throws -> [String] {
        let session = try Session(path, ["-batch", "-bail", database])
        try session.write(script)
        return try session.close()
    }

    /// Starts a shell that stays open between its statements, and after an error.
    func open(_ database: String) throws -> Session {
        try Session(path, ["-batch", database])
    }

    /// A shell that is running.
    final class Session {
        private let process = Process()
        private let input = Pipe()
        private let output = Pipe()
        /// Bytes that the shell has printed since its last answer was returned.
        private var printed: [UInt8] = []

        fileprivate init(_ path: String, _ arguments: [String]) throws {
            BrokenPipe.isError()
            process.executableURL = URL(filePath: path)
            process.arguments = arguments
            // Each shell finds its own library.
            var environment = ProcessInfo.processInfo.environment
            environment["LD_LIBRARY_PATH"] = nil
            environment["HOME"] = "/nonexistent"
            process.environment = environment
            process.standardInput = input
            process.standardOutput = output
            process.standardError = output
            try process.run()
        }

        deinit {
            if process.isRunning { process.terminate() }
        }

        fileprivate func write(_ script: String) throws {
            try input.fileHandleForWriting.write(contentsOf: Data(script.utf8))
        }

        /// Feeds lines to the shell, and returns what it prints about them.
        func run(_ script: String) throws -> [String] {
            let end = "the end of the answer"
            try write("\(script)\nSELECT '\(end)';\n")
            while true {
                var lines = Self.lines(printed)
                if let last = lines.firstIndex(of: end), printed.last == UInt8(ascii: "\n") {
                    printed = []
                    lines.removeSubrange(last...)
                    return lines
                }
                let more = output.fileHandleForReading.availableData
                guard !more.isEmpty else { throw CocoaError(.fileReadUnknown) }
                printed += more
            }
        }

        /// Ends the input, and returns what the shell has printed since.
        @discardableResult
        func close() throws -> [String] {
            try input.fileHandleForWriting.close()
            printed += try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return Self.lines(printed)
        }

        private static func lines(_ bytes: [UInt8]) -> [String] {
            String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }
}
