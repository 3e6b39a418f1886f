import Foundation

/// A second process: `Tests/CofferTestPeer`.
final class Peer: @unchecked Sendable {
    // @unchecked: set up by the initialiser and then used by one test at a time.

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var buffer = Data()
    private let deadline: DispatchWorkItem

    /// A peer that hangs is killed within the test's time limit, so that the test ends, and fails
    /// by what the peer did not print.
    private static let timeout: DispatchTimeInterval = .seconds(isLongRun ? 6600 : 900)

    /// - Parameters:
    ///   - arguments: The verb and its arguments; keys are numbers.
    ///   - wrapper: A program with its arguments to run the peer under.
    init(_ arguments: [String], under wrapper: [String] = []) throws {
        BrokenPipe.isError()
        let program = wrapper + [Self.executable.path] + arguments
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = program
        process.standardInput = input
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        let process = process
        deadline = DispatchWorkItem {
            if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        }
        try process.run()
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.timeout, execute: deadline)
    }

    deinit {
        deadline.cancel()
    }

    /// The number of the process, while it lives.
    var processID: Int32 { process.processIdentifier }

    static func run(_ arguments: [String], under wrapper: [String] = []) throws -> [String] {
        try Peer(arguments, under: wrapper).finish()
    }

    /// The next line that the peer prints; `nil` at its end.
    func line() -> String? {
        while true {
            if let end = buffer.firstIndex(of: 10) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer = Data(buffer[(end + 1)...])
                return line
            }
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else { return nil }
            buffer.append(more)
        }
    }

    /// Lets a waiting peer go on.
    func goOn() {
        send("")
    }

    /// Gives the peer a line to read.
    func send(_ line: String) {
        try? input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Ends the peer without a chance to clean up.
    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        waitUntilExit()
    }

    /// Waits for the end and returns the remaining lines.
    func finish() -> [String] {
        try? input.fileHandleForWriting.close()
        var lines: [String] = []
        while let line = line() { lines.append(line) }
        waitUntilExit()
        return lines
    }

    /// Later the number of the process may belong to another one.
    private func waitUntilExit() {
        process.waitUntilExit()
        deadline.cancel()
    }

    /// The executable is next to the test runner.
    private static var executable: URL {
        URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent().appending(path: "CofferTestPeer")
    }
}
