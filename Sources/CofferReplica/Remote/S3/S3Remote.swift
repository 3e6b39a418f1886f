import Coffer
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A bucket of a storage service as a remote, by the protocol of Amazon S3.
///
/// ```swift
/// let remote = try S3Remote(
///     "https://s3.example/backups/notes", credentials: .file("/etc/notes/credentials"))
/// ```
///
/// The service must refuse to create an object twice. Not all that speak the protocol do so:
/// some ignore the condition of a request, and overwrite. Coffer proves it before it uses a remote.
/// No rule of the bucket may delete or move what is below the prefix.
///
/// The access key needs the right to list the bucket, and to read, create and delete objects below
/// the prefix.
public struct S3Remote: Remote {
    /// How a request tells the service to create an object only if there is none of its name.
    public enum Condition: Sendable {
        /// `If-None-Match: *`, as Amazon and most others know it.
        case ifNoneMatch
        /// `x-goog-if-generation-match: 0`, as Google knows it, with Google's signature.
        ///
        /// ```swift
        /// let remote = try S3Remote(
        ///     "https://storage.googleapis.com/backups/notes", credentials: .file(path),
        ///     region: "auto", condition: .googleGeneration)
        /// ```
        ///
        /// The access key is one of Google's HMAC keys.
        case googleGeneration
    }

    /// The most bytes that an object may have: 8 MiB and 64 KiB.
    static let objectByteCountMax = RemoteAccess.byteCountMax

    private let location: S3Location
    private let signature: RequestSignature
    private let condition: Condition
    private let timeout: Duration
    private let transport: any HTTPTransport
    private let loader: S3KeyLoader

    /// Names a remote. Nothing is sent, and no file is read.
    ///
    /// - Parameters:
    ///   - url: The host, the bucket and the prefix: `https://s3.example/bucket/prefix`. The host
    ///     may be `http` only if it is this machine itself.
    ///   - credentials: Where the access key is.
    ///   - region: The region of the bucket, as the service names it.
    ///   - condition: How the service knows that an object may not exist.
    ///   - timeout: The time after which a request is given up. An object may have 8 MiB: on a line
    ///     of less than 1.2 Mbit/s they take longer than 60 s.
    ///   - transport: What sends the requests; `nil` for a `CurlTransport`, on Apple's systems
    ///     for a `URLSessionTransport`.
    /// - Throws: `.misuse` for a URL, a region or a key that cannot be one. The error does not have
    ///   the URL.
    public init(
        _ url: String, credentials: S3Credentials, region: String = "us-east-1",
        condition: Condition = .ifNoneMatch, timeout: Duration = .seconds(60),
        transport: (any HTTPTransport)? = nil
    ) throws(StoreError) {
        location = try S3Location(url)
        let isPlain = region.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || byte == UInt8(ascii: "-")
        }
        guard !region.isEmpty, isPlain else {
            throw StoreError(
                .misuse, "this is no region of a storage service",
                hint: "It is a name such as us-east-1.")
        }
        guard timeout > .zero else {
            throw StoreError(.misuse, "a request cannot end within \(timeout)")
        }
        signature = RequestSignature(
            scheme: condition == .googleGeneration ? .google : .amazon, region: region)
        self.condition = condition
        self.timeout = timeout
        self.transport = transport ?? Self.usualTransport()
        loader = try S3KeyLoader(credentials, self.transport)
    }

    private static func usualTransport() -> any HTTPTransport {
        #if canImport(Darwin)
        URLSessionTransport()
        #else
        CurlTransport()
        #endif
    }

    /// The host, the bucket and the prefix.
    public var place: String { location.description }

    // MARK: Objects

    /// Creates an object, unless there is one of that name.
    ///
    /// An answer may be lost: after `.remoteUnavailable` the object may exist. It may also be that
    /// `.exists` is the answer to what this very call has created: when a connection breaks, the
    /// transport may send the request again. Who creates therefore compares what is there.
    ///
    /// - Throws: `.remoteUnfit` if the service does not know the condition, `.remoteDenied`,
    ///   `.remoteUnavailable`, `.notFound` without the bucket, `.misuse` for a wrong host or
    ///   region, `.tooBig` above 8 MiB and 64 KiB.
    public func create(
        _ name: String, _ bytes: [UInt8]
    ) async throws -> RemoteAnswer<RemoteCreation> {
        try RemoteName.require(name)
        guard bytes.count <= Self.objectByteCountMax else {
            throw StoreError(
                .tooBig, "an object of \(bytes.count) bytes is too big for a remote",
                hint: "The limit is \(Self.objectByteCountMax) bytes.")
        }
        // The hash in the signature protects the body too. Buckets with Object Lock demand this:
        // > The Content-MD5 or x-amz-sdk-checksum-algorithm header is required for any request to
        // > upload an object with a retention period configured using Object Lock.
        // https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
        var headers = [
            "content-md5": Data(Insecure.MD5.hash(data: bytes)).base64EncodedString(),
            "content-type": "application/octet-stream",
        ]
        switch condition {
        case .ifNoneMatch: headers["if-none-match"] = "*"
        case .googleGeneration: headers["x-goog-if-generation-match"] = "0"
        }
        let answer = try await ask("PUT", name, headers: headers, body: bytes)
        switch answer.status {
        case 200, 201, 204: return RemoteAnswer(.created, time: answer.time)
        case 412: return RemoteAnswer(.exists, time: answer.time)
        default: throw answer.error("create \(name)")
        }
    }

    /// The bytes of an object, or a part of them; `nil` if there is no such object.
    ///
    /// - Throws: `.remoteUnavailable`, also for an answer that is not whole; `.remoteDenied`,
    ///   `.remoteUnfit`, `.notFound` without the bucket, `.misuse` for a wrong host or region, or a
    ///   range below 0.
    public func read(
        _ name: String, _ range: Range<Int>?
    ) async throws -> RemoteAnswer<[UInt8]?> {
        try RemoteName.require(name)
        var headers: [String: String] = [:]
        if let range {
            guard range.lowerBound >= 0 else {
                throw StoreError(.misuse, "no object has bytes before its first")
            }
            // An empty part has no form of its own: it is one byte, of which none is kept.
            let last = max(range.lowerBound, range.upperBound - 1)
            headers["range"] = "bytes=\(range.lowerBound)-\(last)"
        }
        let answer = try await ask(
            "GET", name, headers: headers, byteCountMax: Self.objectByteCountMax)
        switch answer.status {
        case 200:
            try requireWhole(answer, name)
            let body = answer.response.body
            // A service may ignore that only a part was asked for.
            let part = range?.clamped(to: 0..<body.count)
            return RemoteAnswer(part.map { Array(body[$0]) } ?? body, time: answer.time)
        case 206:
            try requireWhole(answer, name)
            return RemoteAnswer(try part(of: answer, range, name), time: answer.time)
        case 416 where range != nil: return RemoteAnswer([], time: answer.time)
        case 404 where answer.isWithoutObject: return RemoteAnswer(nil, time: answer.time)
        default: throw answer.error("read \(name)")
        }
    }

    /// Deletes an object, if there is one.
    ///
    /// - Throws: `.remoteDenied`, `.remoteUnavailable`, `.remoteUnfit`, `.notFound` without the
    ///   bucket, `.misuse` for a wrong host or region.
    public func delete(_ name: String) async throws {
        try RemoteName.require(name)
        let answer = try await ask("DELETE", name)
        guard [200, 204].contains(answer.status) || answer.isWithoutObject else {
            throw answer.error("delete \(name)")
        }
    }

    /// A broken connection may look like the end of the answer.
    private func requireWhole(_ answer: S3Answer, _ name: String) throws(StoreError) {
        let headers = answer.response.headers
        let isWhole =
            if let length = headers["content-length"] {
                Int(length) == answer.response.body.count
            } else {
                headers["transfer-encoding"]?.lowercased() == "chunked"
            }
        guard isWhole else {
            throw StoreError(.remoteUnavailable, "\(name) of \(place) did not arrive whole")
        }
    }

    /// The body of an answer that has a part of an object, if it is the part that was asked for.
    private func part(
        of answer: S3Answer, _ range: Range<Int>?, _ name: String
    ) throws(StoreError) -> [UInt8] {
        let text = answer.response.headers["content-range"] ?? ""
        let body = answer.response.body
        guard let range, let match = text.wholeMatch(of: /bytes ([0-9]+)-([0-9]+)\/([0-9]+)/),
            let first = Int(match.1), let last = Int(match.2), let whole = Int(match.3),
            first == range.lowerBound, last - first == body.count - 1,
            last == min(max(range.upperBound - 1, first), whole - 1)
        else {
            throw StoreError(
                .remoteUnfit, "\(place) answered with another part of \(name) than was asked for")
        }
        return range.isEmpty ? [] : body
    }

    // MARK: Names

    /// Names that begin with a prefix, in the order of their bytes: at most 1 000, those after
    /// another name.
    ///
    /// Objects below the remote's prefix whose names no replica uses are left out.
    ///
    /// - Throws: `.remoteDenied`, `.remoteUnavailable`, `.remoteUnfit`, `.notFound` without the
    ///   bucket, `.misuse` for a wrong host or region.
    public func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        var last = name.isEmpty ? "" : location.prefix + name
        while true {
            var query = [
                "list-type": "2", "encoding-type": "url", "max-keys": "1000",
                "prefix": location.prefix + prefix,
            ]
            if !last.isEmpty { query["start-after"] = last }
            let answer = try await ask(
                "GET", nil, query: query, byteCountMax: Self.objectByteCountMax)
            guard answer.status == 200 else { throw answer.error("list names") }
            let list = try ObjectList(answer.response, prefix: location.prefix, place: place)
            let names = list.names.filter { $0.hasPrefix(prefix) && $0 > name }
            guard names.isEmpty, list.isCut else { return Array(names.sorted().prefix(1000)) }
            // All thousand were foreign: those that count may come after them.
            guard let next = list.last, next > last else {
                throw StoreError(
                    .remoteUnfit, "\(place) lists the same names again and again",
                    hint: "Choose a service that knows version 2 of the list of objects.")
            }
            last = next
        }
    }

    // MARK: Requests

    /// Sends a request, once more with another access key if this one is not valid any longer.
    private func ask(
        _ method: String, _ name: String?, query: [String: String] = [:],
        headers: [String: String] = [:], body: [UInt8] = [], byteCountMax: Int = 64 << 10
    ) async throws -> S3Answer {
        let request = RequestSignature.Request(
            method: method, path: location.path(of: name), query: query, headers: headers,
            bodyHash: SHA256.hash(data: body).hexDigits)
        let keys = try await loader.keys()
        let answer = try await send(request, body, keys, byteCountMax)
        guard answer.isKeyInvalid else { return answer }
        let others = try await loader.keys(insteadOf: keys)
        return others === keys ? answer : try await send(request, body, others, byteCountMax)
    }

    private func send(
        _ request: RequestSignature.Request, _ body: [UInt8], _ keys: S3Keys, _ byteCountMax: Int
    ) async throws -> S3Answer {
        var request = request
        let (own, date) = (signature.scheme.headerPrefix, RequestSignature.text(of: Date()))
        request.headers["host"] = location.host
        request.headers[own + "date"] = date
        request.headers[own + "content-sha256"] = request.bodyHash
        if let token = keys.tokenText { request.headers[own + "security-token"] = token }
        var headers = request.headers
        headers["host"] = nil
        headers["authorization"] = signature.authorization(of: request, at: date, by: keys)
        // Else URLSession unpacks the body, and its length is not that of the header.
        headers["accept-encoding"] = "identity"
        var url = location.origin + RequestSignature.encoded(path: request.path)
        if !request.query.isEmpty { url += "?" + RequestSignature.encoded(query: request.query) }
        do {
            let response = try await transport.send(
                HTTPRequest(
                    method: request.method, url: url, headers: headers, body: body,
                    timeout: timeout, byteCountMax: byteCountMax))
            return S3Answer(response, place: place)
        } catch let error as StoreError {
            throw error
        } catch {
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            // The text of a foreign error may have the headers.
            throw StoreError(
                .remoteUnavailable, "no answer from \(place): \(type(of: error))")
        }
    }
}
