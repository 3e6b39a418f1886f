import Foundation

/// A write into a pipe that nobody reads any more, because the program at its end has ended.
enum BrokenPipe {
    /// Makes it an error of that write; otherwise the system ends the whole run of tests.
    ///
    /// Programs that the tests start have a signal handler reset, so it ends them as before.
    static func isError() { handler }

    private static let handler: Void = { _ = signal(SIGPIPE) { _ in } }()
}
