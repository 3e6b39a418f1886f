/// Sends requests of HTTP, for a remote that is a service.
///
/// ```swift
/// struct ClientTransport: HTTPTransport {
///     let client: HTTPClient
///
///     func send(_ request: HTTPRequest) async throws -> HTTPResponse {
///         // Hand the request to the client, and return its answer, whatever its status is.
///     }
/// }
/// let remote = try S3Remote(url, credentials: .instance, transport: ClientTransport(client))
/// ```
///
/// A transport follows no redirect, keeps no cookie and no copy of an answer, and refuses a server
/// whose certificate it does not trust. It neither adds nor changes a header whose name begins with
/// `x-amz-`, nor `Host`, because the signature covers them.
public protocol HTTPTransport: Sendable {
    /// Sends a request, and waits for the whole answer.
    ///
    /// An answer with any status is returned. An error means that there was none, or not all of it:
    /// the request may have had its effect.
    ///
    /// - Throws: Any error. Its text is not shown unless it is a `StoreError`, as it may have the
    ///   request's headers.
    func send(_ request: HTTPRequest) async throws -> HTTPResponse
}

/// A request of HTTP.
///
/// Its headers may have credentials. Its description has the method and the URL only.
public struct HTTPRequest: Sendable {
    /// `GET`, `PUT` or `DELETE`.
    public let method: String
    /// The whole URL, in which everything is encoded that has to be.
    public let url: String
    /// Names in lower case, and values. `host` is not among them: it is the URL's.
    public let headers: [String: String]
    /// The bytes to send; empty for none.
    public let body: [UInt8]
    /// The time after which the transport gives up, from the call to the last byte of the answer.
    public let timeout: Duration
    /// The most bytes that the body of an answer may have. The transport ends a longer one with an
    /// error, or cuts it if the status is 300 or above.
    public let byteCountMax: Int

    /// Makes a request.
    public init(
        method: String, url: String, headers: [String: String] = [:], body: [UInt8] = [],
        timeout: Duration = .seconds(60), byteCountMax: Int = 64 << 10
    ) {
        (self.method, self.url, self.headers) = (method, url, headers)
        (self.body, self.timeout, self.byteCountMax) = (body, timeout, byteCountMax)
    }
}

extension HTTPRequest: CustomStringConvertible, CustomReflectable {
    /// The method and the URL.
    public var description: String { "\(method) \(url)" }

    /// Nothing: the headers may have credentials.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The answer to a request of HTTP.
public struct HTTPResponse: Sendable {
    /// The status code, such as 200.
    public let status: Int
    /// Names in lower case, and values.
    public let headers: [String: String]
    /// All bytes of the body.
    public let body: [UInt8]

    /// Makes an answer.
    ///
    /// - Parameters:
    ///   - status: The number of the answer, such as 200.
    ///   - headers: Names in any case. Of two that differ in case only, one is taken.
    ///   - body: The bytes behind the headers.
    public init(status: Int, headers: [String: String] = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = [String: String](
            headers.map { ($0.lowercased(), $1) }, uniquingKeysWith: { first, _ in first })
        self.body = body
    }
}

extension HTTPResponse: CustomStringConvertible, CustomReflectable {
    /// The status and the size of the body: a service of credentials answers with secrets.
    public var description: String { "status \(status), \(body.count) bytes" }

    /// Nothing: the body may have credentials.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
