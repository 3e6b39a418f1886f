import Coffer
import Synchronization

/// One request of HTTP and what has come of its answer. It ends once: by the answer, an error, its
/// time-out or the cancellation of its task.
final class HTTPExchange: Sendable {
    private struct State {
        var status = 0
        var headers: [String: String] = [:]
        var body: [UInt8] = []
        var result: Result<HTTPResponse, any Error>?
        var continuation: CheckedContinuation<HTTPResponse, any Error>?
    }

    let request: HTTPRequest
    let deadline: ContinuousClock.Instant
    private let state = Mutex(State())

    /// Begins the time of a request.
    init(_ request: HTTPRequest) {
        self.request = request
        deadline = .now + request.timeout
    }

    var isEnded: Bool { state.withLock { $0.result != nil } }

    /// Waits for the end.
    ///
    /// - Parameter begin: Sends the request. It is not called if the exchange has ended before.
    func response(_ begin: () -> Void) async throws -> HTTPResponse {
        try await withCheckedThrowingContinuation { continuation in
            let early = state.withLock { state in
                if state.result == nil { state.continuation = continuation }
                return state.result
            }
            if let early { return continuation.resume(with: early) }
            begin()
        }
    }

    // MARK: The answer

    /// Takes the head of the answer.
    ///
    /// - Parameter headers: Names in lower case, and values.
    func take(status: Int, headers: [String: String]) {
        // A body may have secrets, and an array that grows leaves copies behind.
        let byteCount = headers["content-length"].flatMap { Int($0) } ?? 64 << 10
        state.withLock { state in
            (state.status, state.headers) = (status, headers)
            state.body.reserveCapacity(max(0, min(byteCount, request.byteCountMax)))
        }
    }

    /// Takes further bytes of the body.
    ///
    /// - Returns: Whether more of them are wanted.
    func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (status, isTooLong, isEnded) = state.withLock { state in
            let free = max(0, request.byteCountMax - state.body.count)
            state.body.append(contentsOf: bytes.prefix(free))
            return (state.status, bytes.count > free, state.result != nil)
        }
        guard isTooLong else { return !isEnded }
        if status >= 300 {
            complete()
        } else {
            fail(
                StoreError(
                    .remoteUnfit,
                    "the answer to \(request) has more than \(request.byteCountMax) bytes"))
        }
        return false
    }

    // MARK: The end

    /// Ends with the answer that has come.
    func complete() {
        let answer = state.withLock { state in
            HTTPResponse(status: state.status, headers: state.headers, body: state.body)
        }
        end(.success(answer))
    }

    /// Ends without an answer.
    ///
    /// - Parameter text: The reason. It has nothing of the request's headers.
    func fail(_ text: String, hint: String? = nil) {
        fail(StoreError(.remoteUnavailable, "no answer to \(request): \(text)", hint: hint))
    }

    /// Ends because there was no whole answer in time.
    func timeOut() {
        fail(
            StoreError(
                .remoteUnavailable,
                "no whole answer to \(request) within \(request.timeout / .seconds(1)) s"))
    }

    func fail(_ error: any Error) {
        end(.failure(error))
    }

    /// Only the first end counts.
    private func end(_ result: Result<HTTPResponse, any Error>) {
        var continuation: CheckedContinuation<HTTPResponse, any Error>?
        state.withLock { state in
            guard state.result == nil else { return }
            state.result = result
            swap(&continuation, &state.continuation)
        }
        continuation?.resume(with: result)
    }
}
