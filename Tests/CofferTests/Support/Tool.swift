import Foundation
import Testing

/// The built `coffer`, run as a shell runs it.
///
/// ```swift
/// let output = try Tool.run(["status", path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
/// #expect(output.exitCode == 0)
/// ```
///
/// All streams are files and not pipes, so that nobody waits for somebody to read; only `start`
/// gives a pipe to write into.
final class Tool: @unchecked Sendable {
    // @unchecked: set up by the initialiser and then used by one test at a time.

    /// What a run left behind.
    struct Output {
        /// 128 plus the signal's number if a signal ended it, as a shell says it.
        let exitCode: Int32
        let stdout: Data
        let stderr: Data

        var text: String { String(decoding: stdout, as: UTF8.self) }
        var errorText: String { String(decoding: stderr, as: UTF8.self) }
    }

    private let process = Process()
    private let folder: TemporaryFolder
    private let input = Pipe()
    private let deadline: DispatchWorkItem

    /// Bytes of the raw key that `StoreKey.numbered` makes.
    static func key(_ number: UInt8) -> Data { Data(repeating: number, count: 32) }

    /// Runs the tool to its end.
    ///
    /// - Parameters:
    ///   - arguments: Verb and options.
    ///   - input: Standard input.
    ///   - descriptors: The content of descriptors from 3 to 9.
    ///   - environment: Added to this process's own.
    ///   - wrapper: A program with its arguments to run the tool under.
    ///   - timeout: After it the tool is killed: exit code 137.
    static func run(
        _ arguments: [String], input: Data = Data(), descriptors: [Int32: Data] = [:],
        environment: [String: String] = [:], under wrapper: [String] = [],
        timeout: Duration = .seconds(600)
    ) throws -> Output {
        let tool = try Tool(
            wrapper + [executable.path] + arguments, input: input, descriptors, environment,
            timeout)
        return try tool.finish()
    }

    /// Starts the tool with a pipe for its standard input.
    static func start(
        _ arguments: [String], descriptors: [Int32: Data] = [:],
        environment: [String: String] = [:], timeout: Duration = .seconds(600)
    ) throws -> Tool {
        try Tool([executable.path] + arguments, input: nil, descriptors, environment, timeout)
    }

    /// Runs another program in the same way, such as `sqlcipher` or `python3`.
    static func runProgram(
        _ program: [String], input: Data = Data(), environment: [String: String] = [:],
        timeout: Duration = .seconds(600)
    ) throws -> Output {
        try Tool(program, input: input, [:], environment, timeout).finish()
    }

    private init(
        _ program: [String], input data: Data?, _ descriptors: [Int32: Data],
        _ environment: [String: String], _ timeout: Duration
    ) throws {
        BrokenPipe.isError()
        folder = try TemporaryFolder()
        // `exec` leaves one process, which signals reach.
        var script = "exec \"$@\""
        for (number, data) in descriptors {
            try data.write(to: folder.url.appending(path: "\(number)"))
            script += " \(number)<\"$COFFER_TEST_FOLDER/\(number)\""
        }
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", script, "sh"] + program
        process.environment = ProcessInfo.processInfo.environment
            .merging(["COFFER_TEST_FOLDER": folder.url.path]) { $1 }
            .merging(environment) { $1 }
        for name in ["0", "1", "2"] {
            try (name == "0" ? data ?? Data() : Data()).write(
                to: folder.url.appending(path: name))
        }
        let files = [
            try FileHandle(forReadingFrom: folder.url.appending(path: "0")),
            try FileHandle(forWritingTo: folder.url.appending(path: "1")),
            try FileHandle(forWritingTo: folder.url.appending(path: "2")),
        ]
        // The deadline keeps the process and so its files; 1 300 of them crash `Process.run`, which
        // copies a directory entry from beyond the end of a full buffer.
        defer { for file in files { try? file.close() } }
        process.standardInput = data == nil ? input : files[0]
        process.standardOutput = files[1]
        process.standardError = files[2]
        let process = process
        // The number of a process that has ended may be that of another one by now.
        deadline = DispatchWorkItem {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }
        try process.run()
        let seconds = timeout / .seconds(1)
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds, execute: deadline)
    }

    /// Writes to the standard input of a started tool.
    func write(_ data: Data) throws {
        try input.fileHandleForWriting.write(contentsOf: data)
    }

    func closeInput() throws {
        try input.fileHandleForWriting.close()
    }

    var processIdentifier: Int32 { process.processIdentifier }

    func send(_ signal: Int32) {
        if process.isRunning { kill(process.processIdentifier, signal) }
    }

    /// The text that it has written to standard error so far.
    var errorText: String {
        (try? String(contentsOf: folder.url.appending(path: "2"), encoding: .utf8)) ?? ""
    }

    /// Returns once standard error contains a text, or the tool has ended without it.
    ///
    /// Blocks the thread. A test that suspends is resumed after the other tests, which may be after
    /// the deadline of the tool.
    func waitForError(_ text: String) throws {
        // A file does not signal that it grew.
        try waitUntil { !process.isRunning || errorText.contains(text) }
    }

    /// Waits for the end.
    func finish() throws -> Output {
        process.waitUntilExit()
        deadline.cancel()
        let wasKilled = process.terminationReason == .uncaughtSignal
        return Output(
            exitCode: process.terminationStatus + (wasKilled ? 128 : 0),
            stdout: try Data(contentsOf: folder.url.appending(path: "1")),
            stderr: try Data(contentsOf: folder.url.appending(path: "2")))
    }

    /// The executable is next to the test runner.
    static var executable: URL {
        URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
            .deletingLastPathComponent().appending(path: "coffer")
    }
}
