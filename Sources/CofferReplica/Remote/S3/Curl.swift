import CCurl
import Coffer

/// The functions of libcurl, loaded.
struct Curl {
    fileprivate let functions: OpaquePointer

    #if canImport(Darwin)
    static let usualNames = ["libcurl.4.dylib"]
    static let installation = "It is a part of macOS. Elsewhere, use URLSessionTransport."
    #else
    /// Debian has the same functions over OpenSSL and over GnuTLS.
    static let usualNames = ["libcurl.so.4", "libcurl-gnutls.so.4"]
    static let installation = "Install version 7.68 or later: apt install libcurl4"
    #endif

    /// `nil` if it cannot be loaded, or is too old.
    init?(_ name: String) {
        guard let functions = coffer_curl_load(name) else { return nil }
        self.functions = functions
    }

    /// Explains a result code of libcurl in English, as the library itself does.
    func text(of code: Int32) -> String {
        String(cString: coffer_curl_error_text(functions, code))
    }
}

/// The requests that are under way, and all connections.
///
/// Only the thread of `CurlConnections` calls its methods, one thread after the other. Any thread
/// calls `wake()`, and the last one that has it frees it.
///
/// `@unchecked` because of the pointer, of which the above is true. libcurl allows it:
/// > This function can be called from any thread.
/// <https://curl.se/libcurl/c/curl_multi_wakeup.html>
final class CurlMulti: @unchecked Sendable {
    private let curl: Curl
    private let pointer: OpaquePointer

    /// `nil` without memory.
    init?(_ curl: Curl, connectionCount: Int) {
        let count = Int32(clamping: connectionCount)
        guard let pointer = coffer_curl_multi_make(curl.functions, count) else { return nil }
        (self.curl, self.pointer) = (curl, pointer)
    }

    deinit {
        coffer_curl_multi_free(pointer)
    }

    func wake() {
        coffer_curl_multi_wake(pointer)
    }

    /// Begins the request of an exchange.
    ///
    /// - Returns: `nil` if the exchange has ended by that.
    func begin(_ exchange: HTTPExchange, _ trust: CurlTrust) -> CurlRequest? {
        guard let request = CurlRequest(exchange, curl.functions) else {
            exchange.fail("no memory")
            return nil
        }
        var code = coffer_curl_request_set_trust(request.pointer, trust.file, trust.folder)
        if code == 0 { code = coffer_curl_multi_add(pointer, request.pointer) }
        guard code == 0 else {
            exchange.fail(curl.text(of: code))
            return nil
        }
        return request
    }

    /// Ends a request, with or without an answer.
    func remove(_ request: CurlRequest) {
        coffer_curl_multi_remove(pointer, request.pointer)
    }

    /// Sends and receives what is possible at once.
    ///
    /// - Returns: `false` if libcurl failed.
    func perform() -> Bool {
        coffer_curl_multi_perform(pointer) != 0
    }

    /// Ends the exchanges whose requests have ended. The requests remain to be removed.
    ///
    /// - Returns: Whether there was one.
    func endRequests() -> Bool {
        var (hasEnded, code) = (false, Int32(0))
        while let owner = coffer_curl_multi_next_ended(pointer, &code) {
            hasEnded = true
            if let exchange = CurlRequestOwner.of(owner)?.exchange { end(exchange, code) }
        }
        return hasEnded
    }

    private func end(_ exchange: HTTPExchange, _ code: Int32) {
        switch Int(code) {
        case COFFER_CURL_OK: exchange.complete()
        case COFFER_CURL_TIMED_OUT: exchange.timeOut()
        case COFFER_CURL_URL_MALFORMAT:
            exchange.fail(StoreError(.misuse, "\(exchange.request.url) is no URL"))
        case COFFER_CURL_CERTIFICATE:
            exchange.fail(
                curl.text(of: code),
                hint: "SSL_CERT_FILE can name a file of certificates that are to be trusted.")
        default: exchange.fail(curl.text(of: code))
        }
    }

    /// Waits for bytes, for `wake()` or for a time.
    ///
    /// - Returns: `false` if libcurl failed.
    func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let rest = (deadline - .now) / .milliseconds(1)
        return coffer_curl_multi_poll(pointer, Int32(max(0, min(rest.rounded(.up), 60_000)))) != 0
    }

    // MARK: Signals

    /// A library for TLS may write to a connection that is closed, which would end the process.
    static func blockPipeSignal() -> coffer_curl_pipe_signal {
        coffer_curl_block_pipe_signal()
    }

    static func restorePipeSignal(_ before: coffer_curl_pipe_signal) {
        coffer_curl_restore_pipe_signal(before)
    }
}

/// A request of libcurl. It belongs to one thread at a time.
final class CurlRequest {
    let exchange: HTTPExchange
    fileprivate let pointer: OpaquePointer
    /// Gives the body of the request to libcurl, and takes the answer. libcurl does not keep it.
    private let owner: CurlRequestOwner

    /// `nil` without memory.
    fileprivate init?(_ exchange: HTTPExchange, _ functions: OpaquePointer) {
        let request = exchange.request
        let owner = CurlRequestOwner(exchange)
        let hasBody = !request.body.isEmpty || request.method == "PUT"
        guard
            let pointer = coffer_curl_request_make(
                functions, request.method, request.url,
                hasBody ? Int64(request.body.count) : -1, owner.functions)
        else { return nil }
        (self.exchange, self.owner, self.pointer) = (exchange, owner, pointer)
        for (name, value) in request.headers {
            guard coffer_curl_request_add_header(pointer, name.lowercased(), value) != 0 else {
                return nil
            }
        }
    }

    deinit {
        coffer_curl_request_free(pointer)
    }
}

/// Gives the body of one request to libcurl, piece by piece, and collects the answer.
private final class CurlRequestOwner {
    let exchange: HTTPExchange
    private var status = 0
    private var headers: [String: String] = [:]
    private var isHeadWhole = false

    init(_ exchange: HTTPExchange) {
        self.exchange = exchange
    }

    /// The functions that libcurl calls, with a pointer that does not keep this object.
    var functions: coffer_curl_owner {
        coffer_curl_owner(
            owner: Unmanaged.passUnretained(self).toOpaque(),
            take_header: { owner, bytes, count in
                guard let owner = CurlRequestOwner.of(owner) else { return }
                owner.takeHeader(UnsafeRawBufferPointer(start: bytes, count: count))
            },
            take_body: { owner, bytes, count in
                guard let owner = CurlRequestOwner.of(owner) else { return 0 }
                let bytes = UnsafeRawBufferPointer(start: bytes, count: count)
                return owner.exchange.take(bytes) ? 1 : 0
            },
            give_body: { owner, offset, buffer, count in
                guard let owner = CurlRequestOwner.of(owner) else { return 0 }
                let part = owner.exchange.request.body.dropFirst(offset).prefix(count)
                UnsafeMutableRawBufferPointer(start: buffer, count: count).copyBytes(from: part)
                return part.count
            })
    }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> CurlRequestOwner? {
        pointer.map { Unmanaged<CurlRequestOwner>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Takes a line of the head. Heads with a status of 1xx come before that of the answer, and
    /// lines after the body belong to none.
    private func takeHeader(_ bytes: UnsafeRawBufferPointer) {
        var line = String(decoding: bytes, as: UTF8.self)[...]
        while line.last?.isNewline == true { line.removeLast() }
        if line.hasPrefix("HTTP/") {
            status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            (headers, isHeadWhole) = ([:], false)
        } else if isHeadWhole {
            return
        } else if line.isEmpty {
            isHeadWhole = true
            exchange.take(status: status, headers: headers)
        } else if let colon = line.firstIndex(of: ":") {
            let value = line[line.index(after: colon)...].trimmed
            // A header that comes twice is a list, in the order in which they come.
            // https://www.rfc-editor.org/rfc/rfc9110#section-5.3
            let name = line[..<colon].lowercased()
            headers[name] = headers[name].map { "\($0), \(value)" } ?? value
        }
    }
}
