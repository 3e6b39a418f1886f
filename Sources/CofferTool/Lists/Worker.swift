import CTool
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// This process as a worker: it runs the tool for one store of a list after another.
///
/// A start of the tool takes several times as long as its work on a small store. Each run has its
/// own standard input, output and error, which come with its arguments over the socket that the
/// process has as standard input.
enum Worker {
    /// The only argument of a worker.
    static let argument = "--worker"

    /// Whether a list has started this process.
    static func isWanted(_ arguments: [String]) -> Bool {
        arguments == [argument] && coffer_is_socket(STDIN_FILENO) == 1
    }

    /// Runs the tool until the list has nothing more to do, or a signal ends a run.
    ///
    /// - Parameter work: Runs the tool with these arguments, and returns its exit code.
    /// - Returns: The exit code of the process.
    static func run(
        _ work: @Sendable (_ arguments: [String]) async -> Int32
    ) async -> Int32 {
        // No command for a secret has it.
        let socket = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
        let nowhere = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard socket >= 0, nowhere >= 0 else { return ExitStatus.io.rawValue }
        use([nowhere, nowhere, nowhere])
        // Without a first run, something else than a list has started this process.
        var end = ExitStatus.usage.rawValue
        while true {
            forgetRun()
            // From here on a signal ends the process at once.
            guard !Signals.haveCome else { return ExitStatus.interrupted.rawValue }
            switch receive(from: socket) {
            case .run(let arguments):
                let code = await work(arguments)
                use([nowhere, nowhere, nowhere])
                let isLast: Int32 = Signals.haveCome ? 1 : 0
                guard coffer_send_end(socket, coffer_run_end(code: code, is_last: isLast)) == 0
                else { return ExitStatus.io.rawValue }
                end = ExitStatus.success.rawValue
            case .end: return end
            case .failure: return ExitStatus.io.rawValue
            }
        }
    }

    private enum Received {
        case run(_ arguments: [String])
        /// The list has closed the socket: it has no more stores for this process.
        case end
        /// The socket failed, or the message was cut short.
        case failure
    }

    /// Waits for the next run, and gives this process its input and outputs.
    private static func receive(from socket: Int32) -> Received {
        var bytes: UnsafeMutablePointer<CChar>?
        var count: UInt32 = 0
        var files: [Int32] = [-1, -1, -1]
        let result = coffer_receive_run(socket, &bytes, &count, &files)
        guard result == 1, let bytes else { return result == 0 ? .end : .failure }
        defer { free(bytes) }
        use(files)
        for file in files { close(file) }
        return .run(
            UnsafeRawBufferPointer(start: bytes, count: Int(count))
                .split(separator: 0, omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) })
    }

    /// Makes the files standard input, output and error.
    private static func use(_ files: [Int32]) {
        for (standard, file) in files.enumerated() { dup2(file, Int32(standard)) }
    }

    /// Forgets what the tool knows of a run.
    private static func forgetRun() {
        Terminal.forgetMessages()
        StandardInput.forgetClaim()
        RunFiles.forget()
        Signals.forgetRun()
    }
}
