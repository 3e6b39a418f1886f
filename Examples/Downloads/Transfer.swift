import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A connection that has not given what was asked for.
enum TransferError: Error, CustomStringConvertible {
    case status(Int)
    case lost(String)
    case otherVersion
    case stopped
    /// The disk is slower than the network: the bytes wait in memory.
    case tooFarAhead

    var description: String {
        switch self {
        case .status(let code): "the server answers \(code)"
        case .lost(let reason): reason
        case .otherVersion: "the file on the server has changed"
        case .stopped: "stopped"
        case .tooFarAhead: "the network is faster than the disk"
        }
    }

    /// Whether the same request may succeed later.
    var isTransient: Bool {
        if case .status(let code) = self { return code >= 500 || code == 408 || code == 429 }
        return true
    }
}

/// The head of an answer.
struct ResponseHead: Sendable {
    let status: Int
    /// The position of the first byte in the file.
    let start: Int
    /// The length of the whole file, if the server says it.
    let total: Int?
    /// A validator for `If-Range`: a strong ETag, or else Last-Modified.
    let version: String?
    /// Whether the server can go on at a breakpoint.
    let canResume: Bool

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        let tag = response.value(forHTTPHeaderField: "ETag")
        version =
            tag?.hasPrefix("\"") == true
            ? tag : response.value(forHTTPHeaderField: "Last-Modified")
        let unit = response.value(forHTTPHeaderField: "Accept-Ranges")
        canResume = version != nil && (status == 206 || unit == "bytes")
        // bytes 100-199/200
        let range =
            response.value(forHTTPHeaderField: "Content-Range")?
            .split { " -/".contains($0) } ?? []
        if status == 206, range.count == 4, let start = Int(range[1]) {
            self.start = start
            total = Int(range[3])
        } else {
            start = status == 206 ? -1 : 0
            let length = response.value(forHTTPHeaderField: "Content-Length")
            total = length.flatMap { Int($0) }
        }
    }
}

/// Requests over HTTP. One value is enough for a program.
struct Network: Sendable {
    private let session: URLSession
    private let delegate = NetworkDelegate()

    /// - Parameter connectionCount: The greatest number of connections to one server.
    init(connectionCount: Int) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = connectionCount
        // A cache would keep whole files in memory.
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.timeoutIntervalForRequest = 30
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    /// Ends all transfers.
    func close() { session.invalidateAndCancel() }

    /// Prepares a request for a file, from a position on if it still has this version.
    func transfer(_ url: URL, from start: Int = 0, ifVersion version: String? = nil) -> Transfer {
        var request = URLRequest(url: url)
        // Positions are those of the file, and not of a compressed form.
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if start > 0, let version {
            request.setValue("bytes=\(start)-", forHTTPHeaderField: "Range")
            request.setValue(version, forHTTPHeaderField: "If-Range")
        }
        let task = session.dataTask(with: request)
        let (bytes, continuation) = AsyncThrowingStream.makeStream(
            of: Data.self, bufferingPolicy: .bufferingOldest(.max))
        delegate.add(task, continuation)
        return Transfer(task: task, delegate: delegate, bytes: bytes)
    }
}

/// A request, and its answer piece by piece.
struct Transfer: Sendable {
    fileprivate let task: URLSessionDataTask
    fileprivate let delegate: NetworkDelegate

    /// The pieces of the body, once. The loop throws a `TransferError` if they are not all.
    let bytes: AsyncThrowingStream<Data, any Error>

    /// Sends the request, and waits for the head of the answer.
    func head() async throws -> ResponseHead {
        try await withCheckedThrowingContinuation { continuation in
            delegate.send(task, continuation)
        }
    }

    /// Lets the transfer end with `.tooFarAhead` when some megabytes wait for the reader.
    func limitWaiting() { delegate.limitWaiting(task) }

    /// Ends the transfer, also one that has not begun.
    func stop() { delegate.end(task, with: TransferError.stopped) }

    /// Reads a small answer as a whole.
    func data(maximumByteCount: Int) async throws -> Data {
        defer { stop() }
        let head = try await head()
        guard head.status == 200 else { throw TransferError.status(head.status) }
        var data = Data()
        for try await piece in bytes {
            data += piece
            guard data.count <= maximumByteCount else {
                throw TransferError.lost("the page is too long")
            }
        }
        return data
    }
}

/// The transfer of an attempt, for whoever wants to stop the attempt.
final class CurrentTransfer: Sendable {
    private let state = Mutex<(transfer: Transfer?, isStopped: Bool)>((nil, false))

    /// - Throws: `.stopped` if somebody has.
    func replace(_ transfer: Transfer) throws(TransferError) -> Transfer {
        let isStopped = state.withLock { state in
            state.transfer = transfer
            return state.isStopped
        }
        guard isStopped else { return transfer }
        transfer.stop()
        throw .stopped
    }

    func stop() {
        let transfer = state.withLock { state in
            state.isStopped = true
            return state.transfer
        }
        transfer?.stop()
    }
}

/// Gets the pieces of all transfers as they arrive.
///
/// On Linux, Swift 6.3 has no `bytes(for:)`, and a task that is suspended and resumed sends its
/// request again. So a transfer that is too far ahead of its reader ends instead, if its server can
/// go on later.
private final class NetworkDelegate: NSObject, URLSessionDataDelegate {
    private struct Running {
        let bytes: AsyncThrowingStream<Data, any Error>.Continuation
        var head: CheckedContinuation<ResponseHead, any Error>?
        var maximumWaitingCount = Int.max
    }

    private let running = Mutex<[Int: Running]>([:])

    func add(_ task: URLSessionTask, _ bytes: AsyncThrowingStream<Data, any Error>.Continuation) {
        running.withLock { $0[task.taskIdentifier] = Running(bytes: bytes) }
    }

    /// A piece has 16 KiB or less on Linux.
    func limitWaiting(_ task: URLSessionTask) {
        running.withLock { $0[task.taskIdentifier]?.maximumWaitingCount = 512 }
    }

    func send(
        _ task: URLSessionTask, _ continuation: CheckedContinuation<ResponseHead, any Error>
    ) {
        let isKnown = running.withLock { running in
            guard running[task.taskIdentifier] != nil else { return false }
            running[task.taskIdentifier]?.head = continuation
            return true
        }
        guard isKnown else { return continuation.resume(throwing: TransferError.stopped) }
        task.resume()
    }

    /// The first end of a transfer counts.
    func end(_ task: URLSessionTask, with error: (any Error)?) {
        guard
            let ended = running.withLock({ $0.removeValue(forKey: task.taskIdentifier) })
        else { return }
        ended.head?.resume(throwing: error ?? TransferError.lost("no answer"))
        ended.bytes.finish(throwing: error)
        task.cancel()
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(.allow)
        guard let response = response as? HTTPURLResponse else { return }
        let head = running.withLock { running in
            defer { running[dataTask.taskIdentifier]?.head = nil }
            return running[dataTask.taskIdentifier]?.head
        }
        head?.resume(returning: ResponseHead(response))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        guard let transfer = running.withLock({ $0[dataTask.taskIdentifier] }),
            case .enqueued(let remaining) = transfer.bytes.yield(data)
        else { return }
        if Int.max - remaining > transfer.maximumWaitingCount {
            end(dataTask, with: TransferError.tooFarAhead)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        end(task, with: error.map { TransferError.lost($0.localizedDescription) })
    }
}
