import Foundation
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT do.
///
/// Work that leaves something half done (a new file) is cancelled and cleans up; everything else
/// ends at once, which no store minds: an unfinished transaction is undone by whoever opens the
/// file next. A second signal always ends the process.
enum Interruption {
    private struct State {
        /// Cancels the running work; taken by the first signal.
        var cancel: (@Sendable () -> Void)?
        /// Put the terminal back in order before the process ends, the last one first.
        var restores: [@Sendable () -> Void] = []
        /// What else is said when the process ends.
        var note: String?
        var isInstalled = false
    }

    private static let state = Mutex(State())

    /// From here on signals are noticed. Called when all secrets are there, so that a command that
    /// fetches one can be interrupted like any other.
    static func install() {
        let wasInstalled = state.withLock { state in
            defer { state.isInstalled = true }
            return state.isInstalled
        }
        guard !wasInstalled, let (reading, writing) = try? FileDescriptor.pipe() else { return }
        signalPipe = writing.rawValue
        Thread.detachNewThread {
            withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte in
                while (try? reading.read(into: byte)) == 1 { interrupted() }
            }
        }
        // A pipe loses no signal, whenever the thread comes to read it. Of all that there is to do
        // a handler may only write: https://man7.org/linux/man-pages/man7/signal-safety.7.html
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal(number) { _ in
                var byte: UInt8 = 0
                _ = write(signalPipe, &byte, 1)
            }
        }
    }

    /// Runs work that a signal cancels.
    ///
    /// - Parameter isLateResultKept: What happens when the signal came too late: the result counts
    ///   (a file was made), or the run was interrupted all the same.
    static func cancelling<T: Sendable>(
        isLateResultKept: Bool = true, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        install()
        let task = Task { try await work() }
        state.withLock { $0.cancel = { task.cancel() } }
        defer { state.withLock { $0.cancel = nil } }
        let result = try await task.value
        if state.withLock({ $0.cancel == nil }) {
            guard isLateResultKept else { throw CancellationError() }
            Terminal.note("it was finished before it could be interrupted")
        }
        return result
    }

    /// What is said from here on when a signal ends the process.
    static func note(_ note: String) {
        state.withLock { $0.note = note }
    }

    /// Runs work that has changed something about the terminal.
    static func restoring<T>(
        _ restore: @escaping @Sendable () -> Void, _ work: () throws -> T
    ) rethrows -> T {
        willRestore(restore)
        defer { self.restore() }
        return try work()
    }

    /// The terminal is changed from here on, and `restore` puts it back.
    static func willRestore(_ restore: @escaping @Sendable () -> Void) {
        install()
        state.withLock { $0.restores.append(restore) }
    }

    /// Takes back the last change of the terminal.
    static func restore() {
        // A signal may come while it runs: what it does again does no harm.
        state.withLock { $0.restores.last }?()
        state.withLock { _ = $0.restores.popLast() }
    }

    private static func interrupted() {
        let (cancel, restores, note) = state.withLock { state in
            defer { state.cancel = nil }
            return (state.cancel, state.restores, state.note)
        }
        // The bar, or the ^C that the terminal shows.
        if Terminal.isInteractive { Terminal.writeRaw("\r\u{1b}[K") }
        if let cancel {
            Terminal.note("interrupted; cleaning up (again to end at once)")
            return cancel()
        }
        for restore in restores.reversed() { restore() }
        Terminal.note("interrupted" + (note.map { "; \($0)" } ?? ""))
        _exit(ExitStatus.interrupted.rawValue)
    }
}

/// The end of the pipe that the signal handler writes to.
///
/// nonisolated(unsafe): written once, before there is a handler that reads it.
nonisolated(unsafe) private var signalPipe: Int32 = -1
