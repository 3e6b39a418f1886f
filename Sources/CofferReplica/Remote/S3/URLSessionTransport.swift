#if canImport(Darwin)
import Coffer
import Dispatch
import Foundation
import Synchronization

/// Sends requests by the system's URLSession, on Apple's systems.
///
/// ```swift
/// let transport = URLSessionTransport()
/// let remote = try S3Remote(url, credentials: .instance, transport: transport)
/// ```
///
/// Several remotes may share one, and with it the connections to a host.
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
        let exchange = HTTPExchange(request)
        exchanges.add(exchange, for: task)
        let deadline = DispatchWorkItem { [weak task] in
            exchange.timeOut()
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

/// Hands what a session reports to the exchange that it is about.
private final class Exchanges: NSObject, URLSessionDataDelegate {
    private let all = Mutex<[Int: HTTPExchange]>([:])

    func add(_ exchange: HTTPExchange, for task: URLSessionTask) {
        all.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> HTTPExchange? {
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
            exchange(of: dataTask)?.take(status: response.statusCode, headers: response.headers)
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard let exchange = exchange(of: dataTask) else { return }
        // Data may be in several pieces.
        for region in data.regions {
            if !region.withUnsafeBytes({ exchange.take($0) }) { return dataTask.cancel() }
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        let exchange = all.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        // A redirect that is not followed may be reported with the response alone.
        if error == nil, let response = task.response as? HTTPURLResponse {
            exchange?.take(status: response.statusCode, headers: response.headers)
        }
        switch error {
        case nil: exchange?.complete()
        case let error as URLError where error.code == .timedOut: exchange?.timeOut()
        // The text is the system's, and names the host and the port at most.
        case let error?: exchange?.fail((error as NSError).localizedDescription)
        }
    }
}

extension HTTPURLResponse {
    /// Names in lower case, and values.
    fileprivate var headers: [String: String] {
        var headers: [String: String] = [:]
        for case (let name, let value) as (String, String) in allHeaderFields {
            headers[name.lowercased()] = value
        }
        return headers
    }
}
#endif
