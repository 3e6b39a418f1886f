import Coffer
import Foundation

/// A server: this program, started once more, which writes to one store until its input ends.
struct Server {
    private let path: String
    private let keyFile: String

    /// `nil` if this process is not a server.
    init?() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, arguments[1] == "serve" else { return nil }
        (path, keyFile) = (arguments[2], arguments[3])
    }

    /// Writes number after number, and prints how many writes have returned.
    func run() throws {
        let store = try Stores.open(path, keyFile)
        var count = 0
        try Self.say("ready")
        while !Self.inputHasEnded {
            let number = count + 1
            try store.write { tx in
                try tx.execute("INSERT INTO written VALUES (\(number), randomblob(100))")
            }
            count = number
            usleep(2000)
        }
        try store.close()
        try Self.say("\(count)")
    }

    /// `print` would keep the line until the process ends.
    private static func say(_ line: String) throws {
        try FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    private static var inputHasEnded: Bool {
        var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return poll(&input, 1, 0) > 0
    }
}

/// A server as the operator sees it.
final class ServerProcess {
    let path: String
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Returns once the server has opened the store.
    init(_ path: String, _ keyFile: String) throws {
        self.path = path
        process.executableURL = Bundle.main.executableURL
        process.arguments = ["serve", path, keyFile]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        _ = output.fileHandleForReading.availableData
    }

    /// Ends the server.
    ///
    /// - Returns: How many of its writes returned; `nil` if it had an error.
    func end() throws -> Int? {
        try input.fileHandleForWriting.close()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { return nil }
        return Int(String(decoding: text, as: UTF8.self).filter(\.isNumber))
    }
}
