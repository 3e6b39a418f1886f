import CTool
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A shell command whose output is a secret, or a secret in wrapped form.
struct ShellCommand {
    enum Input {
        /// The tool's own standard input, environment and terminal, so that the command can prompt.
        case own
        /// The same without standard input, because the verb reads its data from there.
        case nothing
        /// These bytes, at most 4 096, without a terminal, and with no environment but `PATH` and
        /// the given variables.
        case bytes(UnsafeRawBufferPointer)

        /// Whether the command has its own session, and has to end within `TimeOut.seconds`.
        fileprivate var isApart: Bool {
            if case .bytes = self { true } else { false }
        }
    }

    private let command: String
    /// The command's name in messages.
    private let name: String

    init(_ command: String, name: String) {
        self.command = command
        self.name = name
    }

    /// Runs the command to its end.
    ///
    /// - Parameters:
    ///   - variables: Variables of its environment, as `NAME=value`.
    ///   - read: Reads the output.
    /// - Returns: What `read` returns.
    /// - Throws: `ToolError` `.secretSource` if the command fails. The command writes its own error
    ///   to standard error.
    func run<T>(
        input: Input, variables: [String], _ read: (FileDescriptor) throws -> T
    ) throws -> T {
        let source = try Self.descriptor(for: input)
        defer { try? source?.close() }
        let deadline = input.isApart ? ContinuousClock.now + .seconds(TimeOut.seconds) : nil
        var output: Int32 = -1
        return try Signals.running(isApart: input.isApart) {
            let process = start(input, source, variables, &output)
            guard process > 0 else {
                throw ToolError(
                    .secretSource, "\(name) cannot be run: \(Errno(rawValue: -process))")
            }
            return process
        } _: { process in
            let reading = FileDescriptor(rawValue: output)
            let result = Result { try read(reading) }
            // Closing the pipe stops a command that keeps writing, perhaps without end.
            try? reading.close()
            var left: Int32 = -1
            if let deadline {
                // One whose output was refused has nothing more to do.
                left = if case .failure = result { 0 } else { Self.milliseconds(until: deadline) }
            }
            let end = coffer_wait_for_command(process, input.isApart ? 1 : 0, left)
            if case .failure(let error) = result {
                throw error is TimeOut ? TimeOut.error(name) : error
            }
            if let deadline, end == 256 + SIGKILL, deadline < .now { throw TimeOut.error(name) }
            guard end < 256 else {
                Signals.endIfFromTerminal(end - 256)
                throw ToolError(.secretSource, "\(name) died by signal \(end - 256)")
            }
            guard end == 0 else {
                throw ToolError(.secretSource, "\(name) failed with exit code \(end)")
            }
            return try result.get()
        }
    }

    private func start(
        _ input: Input, _ source: FileDescriptor?, _ variables: [String], _ output: inout Int32
    ) -> Int32 {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        var words: [UnsafeMutablePointer<CChar>?] =
            ((input.isApart ? ["PATH=\(path)"] : []) + variables).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        return coffer_start_command(
            command, source?.rawValue ?? -1, &words, input.isApart ? 1 : 0, &output)
    }

    /// Opens the standard input of the command. Returns `nil` if it shares that of the tool.
    private static func descriptor(for input: Input) throws -> FileDescriptor? {
        switch input {
        case .own: return nil
        case .nothing: return try FileDescriptor.open("/dev/null", .readOnly)
        case .bytes(let bytes):
            let (reading, writing) = try FileDescriptor.pipe()
            _ = fcntl(reading.rawValue, F_SETFD, FD_CLOEXEC)
            _ = fcntl(writing.rawValue, F_SETFD, FD_CLOEXEC)
            defer { try? writing.close() }
            // The bytes fit the buffer of a pipe, so writing does not wait for the command.
            try writing.writeAll(bytes)
            return reading
        }
    }
}

extension ShellCommand {
    /// The command did not answer in time.
    struct TimeOut: Error {
        /// How long a service may take.
        static let seconds = 30

        static func error(_ name: String) -> ToolError {
            ToolError(
                .secretSource, "\(name) did not end within \(seconds) seconds, and was killed",
                hint: "Run it alone to see what it waits for.")
        }
    }

    fileprivate static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
        max(0, Int32(((deadline - .now) / .milliseconds(1)).rounded(.up)))
    }

    /// Runs the command on bytes, and reads its whole output.
    ///
    /// - Parameter output: Has room for one byte more than the output may have.
    /// - Returns: The number of bytes of the output.
    /// - Throws: As `run`; `ToolError` `.secretSource` for an output that does not fit.
    func answer(
        to bytes: UnsafeRawBufferPointer, variables: [String],
        into output: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        try run(input: .bytes(bytes), variables: variables) { file in
            try Self.readAll(file, name: name, into: output)
        }
    }

    /// Reads to the end.
    ///
    /// - Throws: `TimeOut`; `ToolError` `.secretSource` for an output that does not fit.
    private static func readAll(
        _ file: FileDescriptor, name: String, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let deadline = ContinuousClock.now + .seconds(TimeOut.seconds)
        var count = 0
        while true {
            var waiting = pollfd(fd: file.rawValue, events: Int16(POLLIN), revents: 0)
            let left = milliseconds(until: deadline)
            guard poll(&waiting, 1, left) != 0 else { throw TimeOut() }
            guard count < bytes.count else {
                throw ToolError(
                    .secretSource, "\(name) wrote more than \(bytes.count - 1) bytes",
                    hint: "It must write the bytes alone, without a text around them.")
            }
            let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[count...]))
            if read == 0 { return count }
            count += read
        }
    }
}
