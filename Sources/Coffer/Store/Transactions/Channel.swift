import Dispatch
import Synchronization

/// A slot for one element, between a thread that may block and a task that may not.
///
/// The thread puts and the task takes. The side that is ahead waits, so at most two elements are in
/// memory. Either side may end the channel: the other side then gets the reason.
final class Channel<Element: Sendable>: Sendable {
    private enum End {
        /// The thread has put all that it had, perhaps up to an error.
        case finished((any Error)?)
        case failed(any Error)
    }

    private struct State {
        var element: Element?
        var end: End?
        /// Wakes the waiting side. Only one side can wait, because the slot is either full or
        /// empty.
        var wake: (@Sendable () -> Void)?

        mutating func takeWake() -> (@Sendable () -> Void)? {
            defer { wake = nil }
            return wake
        }
    }

    private let state = Mutex(State())
    /// How long the thread, which holds a transaction, waits for the task; `nil` waits
    /// indefinitely.
    private let timeout: Duration?

    init(timeout: Duration?) {
        self.timeout = timeout
    }

    /// Ends the channel: the task still gets the element in the slot, and then the error, or `nil`
    /// without one. Does nothing if the channel has ended before.
    func finish(_ error: (any Error)? = nil) {
        end(.finished(error))
    }

    /// Ends both sides with this error, unless the channel has ended before: later puts and takes
    /// throw it.
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

    /// Puts an element into the slot; blocks this thread while the slot is full.
    ///
    /// - Throws: The error of `fail(_:)`; `.busy` if the slot stays full for the timeout of the
    ///   channel, which then fails with that error.
    func putBlocking(_ element: Element) throws {
        let semaphore = DispatchSemaphore(value: 0)
        while try !tryPut(element, wake: { semaphore.signal() }) {
            let deadline = timeout.map { DispatchTime.now() + .milliseconds($0.milliseconds) }
            let result = WorkThreads.whileBlocked {
                semaphore.wait(timeout: deadline ?? .distantFuture)
            }
            guard result == .success else {
                let error = StoreError(
                    .busy, "a stream kept the store waiting for longer than waitTimeout",
                    hint: "Nothing was changed. Do not wait for the same store between two "
                        + "elements.")
                fail(error)
                throw error
            }
        }
    }

    // MARK: The task's side

    /// Takes the next element; waits while the slot is empty.
    ///
    /// - Returns: `nil` once the channel has ended normally and is empty.
    /// - Throws: The error of `fail(_:)`, or that of `finish(_:)` once the slot is empty;
    ///   `.cancelled` if the task is cancelled, which ends the channel.
    func take() async throws -> Element? {
        try await withTaskCancellationHandler {
            while true {
                var result: Result<Element??, any Error> = .success(nil)
                await withCheckedContinuation { continuation in
                    result = Result { try tryTake { continuation.resume() } }
                    if case .success(nil) = result { return }
                    continuation.resume()
                }
                if let result = try result.get() { return result }
            }
        } onCancel: {
            fail(StoreError.streamCancelled)
        }
    }

    // MARK: Both

    /// Puts the element if the slot is empty.
    ///
    /// - Returns: `false` if the slot is full: then `wake` is called once it may be empty.
    /// - Throws: The error of `fail(_:)`.
    private func tryPut(_ element: Element, wake: @escaping @Sendable () -> Void) throws -> Bool {
        let taker = try state.withLock { state -> (@Sendable () -> Void)?? in
            if case .failed(let error)? = state.end { throw error }
            guard state.element == nil else {
                state.wake = wake
                return .none
            }
            state.element = element
            return .some(state.takeWake())
        }
        guard let taker else { return false }
        taker?()
        return true
    }

    /// Takes the element if there is one.
    ///
    /// - Returns: The element; an inner `nil` at the end of the channel; an outer `nil` if the slot
    ///   is empty: then `wake` is called once it may be full.
    /// - Throws: As `take()`, apart from `.cancelled`.
    private func tryTake(wake: @escaping @Sendable () -> Void) throws -> Element?? {
        let (taken, putter) = try state.withLock { state -> (Element??, (@Sendable () -> Void)?) in
            if case .failed(let error)? = state.end { throw error }
            if let element = state.element {
                state.element = nil
                return (.some(element), state.takeWake())
            }
            if case .finished(let error)? = state.end {
                if let error { throw error }
                return (.some(nil), nil)
            }
            state.wake = wake
            return (.none, nil)
        }
        putter?()
        return taken
    }
}

extension StoreError {
    static let streamCancelled = StoreError(.cancelled, "the task of the stream was cancelled")
}
