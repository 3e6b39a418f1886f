import CTool
import Foundation
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The effect of Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT.
///
/// Work that leaves something half done (a new file) is cancelled and cleans up. Everything else
/// ends at once, which does not harm a store: the next connection that opens the file rolls back an
/// unfinished transaction. A second signal always ends the process.
enum Signals {
    private struct State {
        /// Cancels the running work; the first signal takes it.
        var cancel: (@Sendable () -> Void)?
        /// Takes each SIGINT, as long as it is there.
        var takeInterrupt: (@Sendable () -> Void)?
        /// Takes each SIGHUP, as long as it is there.
        var takeHangup: (@Sendable () -> Void)?
        /// Restore the terminal before the process ends, the last one first.
        var restores: [@Sendable () -> Void] = []
        /// The process of a command that is waited for.
        var command: (id: Int32, isApart: Bool)?
        /// Whether a signal is ending the process.
        var isEnding = false
        /// What the end of the process leaves, and the next step.
        var note = Interruption.nothingChanged
        /// What it will leave once the work has begun.
        var workNote: String?
        var isInstalled = false
        /// How many signals came.
        var count = 0
    }

    private static let state = Mutex(State())

    /// Handles signals from now on. `Main` calls it first, so that each signal has the exit code
    /// 130 and, with `--json`, an object. A command that fetches a secret gets the system's own
    /// handling.
    static func install() {
        let wasInstalled = state.withLock { state in
            defer { state.isInstalled = true }
            return state.isInstalled
        }
        guard !wasInstalled, let (reading, writing) = try? FileDescriptor.pipe() else { return }
        // No command may read or write it.
        for end in [reading, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
        signalPipe = writing.rawValue
        Thread.detachNewThread {
            withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte in
                while (try? reading.read(into: byte)) == 1 { interrupted(Int32(byte[0])) }
            }
        }
        // A pipe loses no signal, whenever the thread reads it. Of the necessary steps, a handler
        // may only write: https://man7.org/linux/man-pages/man7/signal-safety.7.html
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            // nohup(1) has it ignored, so that the run outlives its terminal.
            if number == SIGHUP, coffer_ignores_signal(number) != 0 { continue }
            signal(number) { number in
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(signalPipe, &byte, 1)
            }
        }
    }

    /// Runs work that a signal cancels.
    ///
    /// - Parameter isLateResultKept: The outcome if the signal came too late. If `true`, the result
    ///   counts (a file was made); if `false`, the run still counts as interrupted.
    static func cancelling<T: Sendable>(
        isLateResultKept: Bool = true, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        let (result, isInterrupted) = try await cancelled(
            telling: "interrupted; cleaning up (interrupt again to end at once)", work)
        if isInterrupted {
            guard isLateResultKept else { throw CancellationError() }
            Terminal.note("it was finished before it could be interrupted")
        }
        return result
    }

    /// Runs a service, which ends by itself when a signal has cancelled its task.
    ///
    /// - Parameter takeHangup: Takes each SIGHUP. If it is `nil`, SIGHUP ends the service as the
    ///   others do.
    static func serving<T: Sendable>(
        takingHangups takeHangup: (@Sendable () -> Void)?,
        _ work: @escaping @Sendable () async throws -> T
    ) async throws -> T {
        state.withLock { $0.takeHangup = takeHangup }
        defer { state.withLock { $0.takeHangup = nil } }
        return try await cancelled(
            telling: "stopping (interrupt again to end at once)", work
        ).result
    }

    /// - Returns: The result, and whether a signal came before it.
    private static func cancelled<T: Sendable>(
        telling message: String, _ work: @escaping @Sendable () async throws -> T
    ) async throws -> (result: T, isInterrupted: Bool) {
        install()
        let task = Task { try await work() }
        state.withLock { state in
            state.cancel = {
                Terminal.note(message)
                task.cancel()
            }
        }
        defer { state.withLock { $0.cancel = nil } }
        let result = try await task.value
        return (result, state.withLock { $0.cancel == nil })
    }

    /// Runs work during which Ctrl-C does something else. Other signals end the process.
    static func takingInterrupts<T>(
        _ take: @escaping @Sendable () -> Void, _ work: () throws -> T
    ) rethrows -> T {
        install()
        state.withLock { $0.takeInterrupt = take }
        defer { state.withLock { $0.takeInterrupt = nil } }
        return try work()
    }

    /// Sets what the end of the process leaves, and the next step: part of a sentence.
    static func note(_ note: String) {
        state.withLock { $0.note = note }
    }

    /// Sets the note for when `workBegins()` is called.
    static func willChange(_ note: String) {
        state.withLock { $0.workNote = note }
    }

    /// Called when something may be changed from now on: once the secret is read.
    static func workBegins() {
        state.withLock { state in
            if let note = state.workNote { (state.note, state.workNote) = (note, nil) }
        }
    }

    /// Forgets the notes of a run that has ended.
    static func forgetRun() {
        state.withLock { ($0.note, $0.workNote) = (Interruption.nothingChanged, nil) }
    }

    /// Whether a signal has come.
    static var haveCome: Bool { state.withLock { $0.count > 0 } }

    /// Runs work that has changed the terminal, and then restores the terminal.
    static func restoring<T>(
        _ restore: @escaping @Sendable () -> Void, _ work: () throws -> T
    ) rethrows -> T {
        willRestore(restore)
        defer { self.restore() }
        return try work()
    }

    /// Registers a change of the terminal, which `restore` will undo.
    ///
    /// Returns only if a signal is not ending the process already: nothing would undo the change.
    static func willRestore(_ restore: @escaping @Sendable () -> Void) {
        install()
        let isEnding = state.withLock { state in
            state.restores.append(restore)
            return state.isEnding
        }
        // The thread of `interrupted` has taken the changes to undo, and ends the process.
        while isEnding { pause() }
    }

    /// Undoes the last change of the terminal.
    static func restore() {
        // A signal may arrive in between and run it a second time, which does no harm.
        state.withLock { $0.restores.last }?()
        state.withLock { _ = $0.restores.popLast() }
    }

    /// Starts the process of a command, and runs work that waits for it. If a signal ends this
    /// process, the command gets SIGTERM: nobody takes its output any more.
    ///
    /// - Parameters:
    ///   - isApart: Whether the command gets its own session.
    ///   - start: Returns the number of the process. A signal that comes meanwhile is handled after
    ///     it.
    static func running<T>(
        isApart: Bool, _ start: () throws -> Int32, _ work: (_ commandID: Int32) throws -> T
    ) throws -> T {
        let commandID = try state.withLock { state in
            let commandID = try start()
            state.command = (commandID, isApart)
            return commandID
        }
        defer {
            let isEnding = state.withLock { state in
                state.command = nil
                return state.isEnding
            }
            // Must not return, because the caller would report that the command failed. The thread
            // of `interrupted` ends the process.
            while isEnding { pause() }
        }
        return try work(commandID)
    }

    /// Ends this process with 130 if a signal of the terminal has ended the command.
    ///
    /// A terminal sends its signals to the whole process group. This process may notice the end of
    /// the command before it handles its own signal.
    static func endIfFromTerminal(_ signal: Int32) {
        guard [SIGINT, SIGHUP, SIGQUIT].contains(signal), coffer_ignores_signal(signal) == 0,
            signalPipe >= 0
        else { return }
        // Sends the signal to the process, because worker threads block signals.
        kill(getpid(), signal)
        while true { pause() }
    }

    private static func interrupted(_ signal: Int32) {
        if signal == SIGINT, let take = state.withLock({ $0.takeInterrupt }) { return take() }
        if signal == SIGHUP, let take = state.withLock({ $0.takeHangup }) { return take() }
        let (cancel, restores, note, isFirst) = state.withLock { state in
            defer { (state.cancel, state.count) = (nil, state.count + 1) }
            // Ends at once while a command fetches the secret, because nothing is half done yet.
            state.isEnding = state.isEnding || state.cancel == nil || state.command != nil
            let cancel = state.isEnding ? nil : state.cancel
            return (cancel, state.restores, state.note, state.count == 0)
        }
        // Erases the progress bar, or the ^C that the terminal shows.
        if Terminal.isInteractive {
            Terminal.writeRaw("\r\u{1b}[K")
        } else if isatty(STDERR_FILENO) != 0 {
            Terminal.writeRaw("\n")
        }
        if let cancel { return cancel() }
        for restore in restores.reversed() { restore() }
        state.withLock { state in
            if let command = state.command {
                coffer_signal_command(command.id, command.isApart ? 1 : 0, SIGTERM)
            }
        }
        let end = "interrupted; \(note)"
        if !Terminal.isJSON { Terminal.note(end) }
        let mayEnd = Terminal.writeMessages(
            endingWith: Failure(ToolError(.interrupted, end)))
        // The run is over, and its own messages are being written.
        guard mayEnd || !isFirst else { return }
        _exit(ExitStatus.interrupted.rawValue)
    }
}

/// The end of the pipe that the signal handler writes to.
///
/// nonisolated(unsafe): written once, before there is a handler that reads it.
nonisolated(unsafe) private var signalPipe: Int32 = -1
