import Coffer
import Synchronization

/// The exchanges of a transport, and the connections that they use one after the other.
///
/// One thread does all of them. It ends when there are none, and the connections stay open for
/// later ones. Cancelled and added exchanges wake it.
final class CurlConnections: Sendable {
    private struct State {
        /// Exchanges that the thread has not seen yet.
        var added: [HTTPExchange] = []
        var hasThread = false
        var multi: CurlMulti?
    }

    private let countMax: Int
    private let trust: CurlTrust
    private let libraries: [String]
    private let state = Mutex(State())

    init(countMax: Int, trust: CurlTrust, libraries: [String]) {
        (self.countMax, self.trust, self.libraries) = (max(1, countMax), trust, libraries)
    }

    /// Sends the request of an exchange as soon as there is a connection for it.
    func add(_ exchange: HTTPExchange) {
        let needsThread = state.withLock { state in
            state.added.append(exchange)
            state.multi?.wake()
            defer { state.hasThread = true }
            return !state.hasThread
        }
        if needsThread { beginBlockingWork { self.work() } }
    }

    /// Looks for exchanges that have ended.
    func wake() {
        state.withLock { $0.multi?.wake() }
    }

    // MARK: The thread

    private func work() {
        let signal = CurlMulti.blockPipeSignal()
        defer { CurlMulti.restorePipeSignal(signal) }
        do {
            try work(multi())
        } catch {
            while let added = takeAdded(isLast: true) {
                for exchange in added { exchange.fail(error) }
            }
        }
    }

    private func work(_ multi: CurlMulti) {
        var waiting: [HTTPExchange] = []
        var requests: [CurlRequest] = []
        while let added = takeAdded(isLast: waiting.isEmpty && requests.isEmpty) {
            waiting += added
            let now = ContinuousClock.now
            for exchange in waiting + requests.map(\.exchange) where exchange.deadline <= now {
                exchange.timeOut()
            }
            waiting.removeAll(where: \.isEnded)
            requests.removeAll { request in
                guard request.exchange.isEnded else { return false }
                multi.remove(request)
                return true
            }
            while requests.count < countMax, !waiting.isEmpty {
                let exchange = waiting.removeFirst()
                if let request = multi.begin(exchange, trust) { requests.append(request) }
            }
            if waiting.isEmpty && requests.isEmpty { continue }
            let all = waiting + requests.map(\.exchange)
            let deadline = all.map(\.deadline).min() ?? now
            guard multi.perform(), multi.endRequests() || multi.wait(until: deadline) else {
                for exchange in all { exchange.fail("libcurl failed") }
                continue
            }
        }
    }

    /// - Parameter isLast: Whether the thread ends if there are none.
    /// - Returns: `nil` if it ends.
    private func takeAdded(isLast: Bool) -> [HTTPExchange]? {
        state.withLock { state in
            var added: [HTTPExchange] = []
            swap(&added, &state.added)
            guard isLast, added.isEmpty else { return added }
            state.hasThread = false
            return nil
        }
    }

    /// - Throws: `.unsupported` if libcurl cannot be loaded.
    private func multi() throws(StoreError) -> CurlMulti {
        if let multi = state.withLock({ $0.multi }) { return multi }
        guard let curl = libraries.lazy.compactMap(Curl.init).first else {
            throw StoreError(
                .unsupported, "a request needs libcurl, which cannot be loaded",
                hint: Curl.installation)
        }
        guard let multi = CurlMulti(curl, connectionCount: countMax) else {
            throw StoreError(.remoteUnavailable, "libcurl cannot begin")
        }
        state.withLock { $0.multi = multi }
        return multi
    }
}
