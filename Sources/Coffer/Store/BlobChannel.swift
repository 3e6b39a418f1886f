import Dispatch
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One place for one chunk, between a thread that may block and a task that may not.
///
/// One side puts and the other takes; the one that is ahead waits, so no more than two chunks are
/// in memory. Either side may end it: the other then gets the reason.
final class BlobChannel: Sendable {
    private enum End {
        case finished
        case failed(any Error)
    }

    private struct State {
        var chunk: Data?
        var end: End?
        /// Wakes the side that waits. Only one can: the place is either taken or free.
        var wake: (@Sendable () -> Void)?

        mutating func takeWake() -> (@Sendable () -> Void)? {
            defer { wake = nil }
            return wake
        }
    }

    private let state = Mutex(State())
    /// How long the thread, which holds a transaction, waits for the task; `nil` for ever.
    private let timeout: Duration?

    init(timeout: Duration?) {
        self.timeout = timeout
    }

    /// Nothing more will be put; what is there can still be taken.
    func finish() {
        end(.finished)
    }

    /// Ends both sides with this error, unless it has ended before.
    func fail(_ error: any Error) {
        end(.failed(error))
    }

    private func end(_ end: End) {
        let wake = state.withLock { state in
            if state.end == nil { state.end = end }
            return state.takeWake()
        }
        wake?()
    }

    // MARK: The thread's side

    /// Puts a chunk; blocks while the last one was not taken.
    func putBlocking(_ chunk: Data) throws {
        try block { try tryPut(chunk, wake: $0) ? () : nil }
    }

    /// Takes a chunk, `nil` at the end; blocks while there is none.
    func takeBlocking() throws -> Data? {
        try block { try tryTake(wake: $0) }
    }

    private func block<T>(_ attempt: (@escaping @Sendable () -> Void) throws -> T?) throws -> T {
        let semaphore = DispatchSemaphore(value: 0)
        while true {
            if let result = try attempt({ semaphore.signal() }) { return result }
            let deadline = timeout.map { DispatchTime.now() + .milliseconds($0.milliseconds) }
            guard semaphore.wait(timeout: deadline ?? .distantFuture) == .success else {
                let error = StoreError(
                    .busy, "a stream kept the store waiting for longer than waitTimeout",
                    hint: "Nothing was changed; do not wait for the same store in between.")
                fail(error)
                throw error
            }
        }
    }

    // MARK: The task's side

    /// Puts a chunk when the last one was taken.
    func put(_ chunk: Data) async throws {
        try await suspend { try self.tryPut(chunk, wake: $0) ? () : nil }
    }

    /// The next chunk, `nil` at the end.
    func take() async throws -> Data? {
        try await suspend { try self.tryTake(wake: $0) }
    }

    private func suspend<T>(
        _ attempt: (@escaping @Sendable () -> Void) throws -> T?
    ) async throws -> T {
        try await withTaskCancellationHandler {
            while true {
                var result: Result<T?, any Error> = .success(nil)
                await withCheckedContinuation { continuation in
                    result = Result { try attempt { continuation.resume() } }
                    if case .success(nil) = result { return }
                    continuation.resume()
                }
                if let result = try result.get() { return result }
            }
        } onCancel: {
            fail(Self.cancelled)
        }
    }

    static let cancelled = StoreError(.cancelled, "the task of the stream was cancelled")

    // MARK: Both

    /// `false` if the place is taken: then `wake` is called once it may be free.
    private func tryPut(_ chunk: Data, wake: @escaping @Sendable () -> Void) throws -> Bool {
        let taker = try state.withLock { state -> (@Sendable () -> Void)?? in
            if case .failed(let error)? = state.end { throw error }
            guard state.chunk == nil else {
                state.wake = wake
                return .none
            }
            state.chunk = chunk
            return .some(state.takeWake())
        }
        guard let taker else { return false }
        taker?()
        return true
    }

    /// `nil` if nothing is there yet: then `wake` is called once something may be.
    private func tryTake(wake: @escaping @Sendable () -> Void) throws -> Data?? {
        let (taken, putter) = try state.withLock { state -> (Data??, (@Sendable () -> Void)?) in
            if case .failed(let error)? = state.end { throw error }
            if let chunk = state.chunk {
                state.chunk = nil
                return (.some(chunk), state.takeWake())
            }
            if state.end != nil { return (.some(nil), nil) }
            state.wake = wake
            return (.none, nil)
        }
        putter?()
        return taken
    }
}
