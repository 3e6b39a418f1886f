import Foundation

/// This program, started once more, which fetches until it is killed.
///
/// `Process` starts a program, which opens the store by itself. Never `fork` with an open store and
/// use it in the child: that may corrupt the file
/// (https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_).
struct ChildProcess {
    private let process = Process()

    init(_ arguments: [String]) throws {
        process.executableURL = Bundle.main.executableURL
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        try process.run()
    }

    var isRunning: Bool { process.isRunning }

    /// Ends it as `kill -9` does: it cannot clean up.
    ///
    /// - Returns: Whether the signal ended it.
    func kill() -> Bool {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal
    }
}
