import Coffer
import Dispatch
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends requests by the system's URLSession.
///
/// ```swift
/// let transport = URLSessionTransport()
/// let remote = try S3Remote(url, credentials: .instance, transport: transport)
/// ```
///
/// Several remotes may share one, and with it the connections to a host. On Linux libcurl does the
/// work, which goes through the proxy that the environment names, if it names one.
public final class URLSessionTransport: HTTPTransport {
    private let session: URLSession
    private let exchanges: Exchanges

    /// - Parameter connectionCountMax: How many connections to one host may be open at once.
    public init(connectionCountMax: Int = 16) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        configuration.urlCredentialStorage = nil
        configuration.httpMaximumConnectionsPerHost = max(1, connectionCountMax)
        exchanges = Exchanges()
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    deinit {
        // A session keeps its delegate until then.
        session.finishTasksAndInvalidate()
    }

    /// - Throws: `.remoteUnavailable` if there was no answer in time, `.remoteUnfit` for one that
    ///   is too long, `CancellationError` if the task was cancelled.
    public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let url = URL(string: request.url) else {
            throw StoreError(.misuse, "\(request.url) is no URL")
        }
        var converted = URLRequest(url: url)
        converted.httpMethod = request.method
        converted.httpShouldHandleCookies = false
        // The session's own time-out begins anew with every byte. It comes after `deadline`.
        converted.timeoutInterval = request.timeout / .seconds(1) + 60
        for (name, value) in request.headers { converted.setValue(value, forHTTPHeaderField: name) }
        if !request.body.isEmpty || request.method == "PUT" {
            converted.httpBody = Data(request.body)
        }
        let task = session.dataTask(with: converted)
        let exchange = Exchange(request)
        exchanges.add(exchange, for: task)
        let deadline = DispatchWorkItem { [weak task] in
            exchange.fail(Exchange.timedOut(request))
            task?.cancel()
        }
        defer { deadline.cancel() }
        DispatchQueue.global().asyncAfter(
            deadline: .now() + request.timeout / .seconds(1), execute: deadline)
        return try await withTaskCancellationHandler {
            try await exchange.response { task.resume() }
        } onCancel: {
            exchange.fail(CancellationError())
            task.cancel()
        }
    }
}

/// One request and what has come of its answer.
private final class Exchange: Sendable {
    private struct State {
        var status = 0
        var headers: [String: String] = [:]
        var body: [UInt8] = []
        var result: Result<HTTPResponse, any Error>?
        var continuation: CheckedContinuation<HTTPResponse, any Error>?
    }

    private let request: HTTPRequest
    private let state = Mutex(State())

    init(_ request: HTTPRequest) {
        self.request = request
    }

    static func timedOut(_ request: HTTPRequest) -> StoreError {
        StoreError(
            .remoteUnavailable,
            "no whole answer to \(request) within \(request.timeout / .seconds(1)) s")
    }

    /// Waits for the answer to what `begin` sends.
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

    func take(_ response: HTTPURLResponse) {
        var headers: [String: String] = [:]
        for case (let name, let value) as (String, String) in response.allHeaderFields {
            headers[name] = value
        }
        state.withLock { state in
            (state.status, state.headers) = (response.statusCode, headers)
        }
    }

    /// - Returns: Whether more of the body is wanted.
    func take(_ data: Data) -> Bool {
        let (status, isTooLong) = state.withLock { state in
            let free = request.byteCountMax - state.body.count
            state.body += data.prefix(free)
            return (state.status, data.count > free)
        }
        guard isTooLong else { return true }
        if status >= 300 {
            complete(nil)
        } else {
            fail(
                StoreError(
                    .remoteUnfit,
                    "the answer to \(request) has more than \(request.byteCountMax) bytes"))
        }
        return false
    }

    func complete(_ error: (any Error)?) {
        guard let error else {
            let answer = state.withLock { state in
                HTTPResponse(status: state.status, headers: state.headers, body: state.body)
            }
            return end(.success(answer))
        }
        // The text is the system's, and names the host and the port at most.
        let text = (error as NSError).localizedDescription
        let isTimedOut = (error as? URLError)?.code == .timedOut
        fail(
            isTimedOut
                ? Self.timedOut(request)
                : StoreError(.remoteUnavailable, "no answer to \(request): \(text)"))
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

/// Hands what a session reports to the exchange that it is about.
private final class Exchanges: NSObject, URLSessionDataDelegate {
    private let all = Mutex<[Int: Exchange]>([:])

    func add(_ exchange: Exchange, for task: URLSessionTask) {
        all.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> Exchange? {
        all.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // The signature is for this host only, and another must not learn it.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse {
            exchange(of: dataTask)?.take(response)
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if exchange(of: dataTask)?.take(data) == false { dataTask.cancel() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        let exchange = all.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        // A redirect that is not followed may be reported with the response alone.
        if error == nil, let response = task.response as? HTTPURLResponse {
            exchange?.take(response)
        }
        exchange?.complete(error)
    }
}
