import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferReplica

/// What a remote asks a storage service, and what it makes of each answer.
@Suite struct S3RemoteTests {
    private static let secret = "wJalrXUtnFEMI/K7MDENG"
    private static let time = Date(timeIntervalSince1970: 784_111_777)

    private func remote(
        _ transport: FakeTransport, at url: String = "https://s3.example/bucket/pre",
        condition: S3Remote.Condition = .ifNoneMatch
    ) throws -> S3Remote {
        try S3Remote(
            url, credentials: .keys(accessKeyID: "AKI", secretAccessKey: Self.secret),
            condition: condition, transport: transport)
    }

    /// A remote that gets the same answer to everything.
    private func remote(_ answer: HTTPResponse) throws -> S3Remote {
        try remote(FakeTransport { _ in answer })
    }

    // MARK: URLs

    @Test(arguments: [
        ("https://s3.example/b", "https://s3.example/b"),
        ("https://S3.Example:443/b/", "https://s3.example/b"),
        ("https://s3.example:9000/b/a/c%20d/", "https://s3.example:9000/b/a/c%20d"),
        ("http://127.0.0.1:9000/b/a", "http://127.0.0.1:9000/b/a"),
        ("http://localhost/b", "http://localhost/b"),
        ("http://[::1]:9000/b", "http://[::1]:9000/b"),
    ])
    func `a URL names a host, a bucket and a prefix`(url: String, place: String) throws {
        #expect(try remote(FakeTransport { _ in .text(200, "") }, at: url).place == place)
    }

    @Test(arguments: [
        "", "s3.example/b", "ftp://s3.example/b", "https:///b", "https://s3.example",
        "https://s3.example/", "https://s3.example//a", "https://s3.example/b//a",
        "https://s3.example/b/../c", "https://s3.example/b?word", "https://s3.example/b#word",
        "https://word@s3.example/b", "https://word:word@s3.example/b", "http://s3.example/b",
        "http://127.0.0.1.example/b", "http://192.0.2.1/b", "https://s3.example/b a",
        "https://s3.example/b/" + String(repeating: "a", count: 800),
    ])
    func `a URL that cannot be one is misuse, and is not shown`(url: String) throws {
        let error = expect(.misuse) { try remote(FakeTransport { _ in .text(200, "") }, at: url) }
        #expect(error.map { "\($0)".contains("word@") || "\($0)".contains("word:") } == false)
    }

    @Test(arguments: ["", "US EAST", "a/b"])
    func `a region that cannot be one is misuse`(region: String) {
        expect(.misuse) {
            try S3Remote("https://s3.example/b", credentials: .instance, region: region)
        }
    }

    // MARK: Create

    @Test func `an object is created on the condition that there is none`() async throws {
        let transport = FakeTransport { _ in .text(200, "") }
        let answer = try await remote(transport).create("log/1", Array("hello".utf8))
        #expect(answer.value == .created)
        #expect(answer.time == Self.time)
        let request = try #require(transport.requests.first)
        #expect(request.description == "PUT https://s3.example/bucket/pre/log/1")
        #expect(request.headers["if-none-match"] == "*")
        #expect(request.headers["content-md5"] == "XUFAKrxLKna5cZ2REBfFkg==")
        #expect(
            request.headers["x-amz-content-sha256"]
                == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
        #expect(request.body == Array("hello".utf8))
        let authorization = try #require(request.headers["authorization"])
        #expect(
            authorization.contains(
                "SignedHeaders=content-md5;content-type;host;if-none-match;"
                    + "x-amz-content-sha256;x-amz-date,"))
        #expect(!authorization.contains(Self.secret))
    }

    @Test func `Google gets its own condition and its own headers only`() async throws {
        let transport = FakeTransport { _ in .text(200, "") }
        _ = try await remote(transport, condition: .googleGeneration).create("log/1", [1])
        let headers = try #require(transport.requests.first).headers
        #expect(headers["x-goog-if-generation-match"] == "0")
        #expect(headers["if-none-match"] == nil)
        #expect(!headers.keys.contains { $0.hasPrefix("x-amz-") })
        #expect(headers["authorization"]?.hasPrefix("GOOG4-HMAC-SHA256 Credential=AKI/") == true)
        #expect(headers["authorization"]?.contains("/us-east-1/storage/goog4_request,") == true)
    }

    @Test(arguments: [
        (200, RemoteCreation.created), (201, .created), (204, .created), (412, .exists),
    ])
    func `a status tells whether an object was created`(
        status: Int, creation: RemoteCreation
    ) async throws {
        let answer = try await remote(.text(status, "")).create("a", [1])
        #expect(answer.value == creation)
        #expect(answer.time == Self.time)
    }

    struct Failure: Sendable, CustomTestStringConvertible {
        let response: HTTPResponse
        let code: StoreError.Code
        /// What the error names: the status, unless something better.
        var text = "(status "
        var testDescription: String { "\(response.status) \(text)" }
    }

    private static let named = "<ArgumentName>If-None-Match</ArgumentName>"
    private static let failures: [Failure] = [
        Failure(response: .error(409, "ConditionalRequestConflict"), code: .remoteUnavailable),
        Failure(response: .error(408, "RequestTimeout"), code: .remoteUnavailable),
        Failure(response: .text(429, ""), code: .remoteUnavailable),
        Failure(response: .error(500, "InternalError"), code: .remoteUnavailable),
        Failure(response: .error(503, "SlowDown"), code: .remoteUnavailable, text: "SlowDown"),
        Failure(response: .error(400, "BadDigest"), code: .remoteUnavailable),
        Failure(response: .error(400, "XAmzContentSHA256Mismatch"), code: .remoteUnavailable),
        Failure(response: .error(400, "RequestTimeout"), code: .remoteUnavailable),
        Failure(response: .error(501, "NotImplemented"), code: .remoteUnfit),
        Failure(response: .text(501, ""), code: .remoteUnfit),
        Failure(response: .error(400, "NotImplemented"), code: .remoteUnfit),
        Failure(response: .error(400, "InvalidArgument", named), code: .remoteUnfit),
        Failure(response: .text(202, ""), code: .remoteUnfit),
        Failure(response: .text(405, ""), code: .remoteUnfit),
        Failure(
            response: .error(403, "AccessDenied"), code: .remoteDenied, text: "AccessDenied"),
        Failure(response: .text(401, ""), code: .remoteDenied, text: "401"),
        Failure(
            response: .error(403, "RequestTimeTooSkewed"), code: .remoteDenied,
            text: "1994-11-06T08:49:37Z"),
        Failure(
            response: .error(403, "SignatureDoesNotMatch"), code: .remoteDenied, text: "secret"),
        Failure(response: .error(404, "NoSuchBucket"), code: .notFound, text: "bucket"),
        Failure(response: .text(404, "<html></html>"), code: .notFound, text: "host"),
        Failure(
            response: .error(301, "PermanentRedirect", "<Endpoint>s3.eu.example</Endpoint>"),
            code: .misuse, text: "s3.eu.example"),
        Failure(
            response: .text(301, "", ["x-amz-bucket-region": "eu-west-1"]), code: .misuse,
            text: "eu-west-1"),
        Failure(
            response: .text(307, "", ["Location": "https://other.example/b?signature=1"]),
            code: .misuse, text: "other.example."),
        Failure(response: .text(302, ""), code: .misuse),
        Failure(
            response: .error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
            code: .misuse, text: "eu-west-1"),
    ]

    @Test(arguments: failures)
    func `an answer that is no success has the code of its reason`(failure: Failure) async throws {
        let remote = try remote(failure.response)
        let errors = [
            await expect(failure.code) { try await remote.create("a", [1]) },
            await expect(failure.code) { try await remote.read("a") },
            await expect(failure.code) { try await remote.names(withPrefix: "", after: "") },
            await expect(failure.code) { try await remote.delete("a") },
        ]
        for error in errors {
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains(failure.text))
            #expect(!text.contains(Self.secret) && !text.contains("signature=1"))
        }
    }

    @Test func `a word of the service is shown only if it is a plain one`() async throws {
        let remote = try remote(.error(403, "&#27;[2J Denied", "<Message>text</Message>"))
        let error = await expect(.remoteDenied) { try await remote.read("a") }
        #expect(error.map { "\($0)".contains("Denied (") || "\($0)".contains("text") } == false)
    }

    @Test func `a connection that fails is unavailable, whatever its error says`() async throws {
        struct Told: Error, CustomStringConvertible {
            let description = "sent Authorization: \(S3RemoteTests.secret)"
        }
        let remote = try remote(FakeTransport { _ in throw Told() })
        let error = await expect(.remoteUnavailable) { try await remote.create("a", [1]) }
        #expect(error.map { "\($0)".contains(Self.secret) } == false)
        let cancelled = try self.remote(FakeTransport { _ in throw CancellationError() })
        await #expect(throws: CancellationError.self) { try await cancelled.read("a") }
    }

    @Test func `an object of any other name or size is not sent`() async throws {
        let transport = FakeTransport { _ in .text(200, "") }
        let remote = try remote(transport)
        for name in ["", "/a", "a/../b", "A", "a?b", "a%2fb"] {
            await expect(.misuse) { try await remote.create(name, [1]) }
            await expect(.misuse) { try await remote.read(name) }
            await expect(.misuse) { try await remote.delete(name) }
        }
        let big = [UInt8](repeating: 0, count: S3Remote.objectByteCountMax + 1)
        await expect(.tooBig) { try await remote.create("a", big) }
        #expect(transport.requests.isEmpty)
    }

    // MARK: Read

    private static let object = Array("0123456789".utf8)

    @Test func `an object is read whole, and an absent one is nil`() async throws {
        let answer = try await remote(.text(200, "0123456789")).read("a")
        #expect(answer.value == Self.object)
        #expect(answer.time == Self.time)
        let absent = try await remote(.error(404, "NoSuchKey")).read("a")
        #expect(absent.value == nil)
        #expect(absent.time == Self.time)
    }

    @Test(arguments: [
        (0..<10, 0..<10), (2..<5, 2..<5), (8..<99, 8..<10), (0..<0, 0..<0),
        (10..<20, 10..<10), (20..<30, 10..<10), (5..<5, 5..<5),
    ])
    func `a part is what both kinds of services give`(
        range: Range<Int>, expected: Range<Int>
    ) async throws {
        let honest = FakeTransport { request in
            let match = try #require(
                request.headers["range"]?.wholeMatch(of: /bytes=(\d+)-(\d+)/))
            let (first, last) = (try #require(Int(match.1)), try #require(Int(match.2)))
            guard first < 10 else { return .error(416, "InvalidRange") }
            let end = min(last, 9)
            return .text(
                206, String(decoding: Self.object[first...end], as: UTF8.self),
                ["Content-Range": "bytes \(first)-\(end)/10"])
        }
        let ignoring = FakeTransport { _ in .text(200, "0123456789") }
        for transport in [honest, ignoring] {
            let answer = try await remote(transport).read("a", range)
            #expect(answer.value == Array(Self.object[expected]))
        }
    }

    @Test(arguments: [
        "bytes 3-5/10", "bytes 2-5/10", "bytes 2-4/*", "bytes 2-4", "", "2-4/10",
        "bytes 2-4/4",
    ])
    func `another part than was asked for is refused`(header: String) async throws {
        let remote = try remote(.text(206, "234", ["Content-Range": header]))
        await expect(.remoteUnfit) { try await remote.read("a", 2..<5) }
        await expect(.remoteUnfit) { try await remote.read("a") }
    }

    @Test func `a shorter part than there is to have is refused`() async throws {
        let remote = try remote(.text(206, "23", ["Content-Range": "bytes 2-3/10"]))
        await expect(.remoteUnfit) { try await remote.read("a", 2..<5) }
    }

    @Test func `a torn body is not an object`() async throws {
        let torn = try remote(.text(200, "01234", ["Content-Length": "10"]))
        await expect(.remoteUnavailable) { try await torn.read("a") }
        await expect(.remoteUnavailable) { try await torn.read("a", 0..<3) }
        let endless = try remote(HTTPResponse(status: 200, body: Self.object))
        await expect(.remoteUnavailable) { try await endless.read("a") }
        let chunked = try remote(
            HTTPResponse(
                status: 200, headers: ["Transfer-Encoding": "chunked"], body: Self.object))
        #expect(try await chunked.read("a").value == Self.object)
    }

    @Test func `a part before the first byte is misuse`() async throws {
        let remote = try remote(.text(200, ""))
        await expect(.misuse) { try await remote.read("a", -1..<3) }
    }

    // MARK: Delete

    @Test(arguments: [HTTPResponse.text(204, ""), .text(200, ""), .error(404, "NoSuchKey")])
    func `an object that is gone is deleted`(response: HTTPResponse) async throws {
        try await remote(response).delete("a")
    }

    // MARK: Names

    private static func list(_ keys: [String], isCut: Bool = false) -> HTTPResponse {
        let contents = keys.map { "<Contents><Key>\($0)</Key><Size>1</Size></Contents>" }
        return .text(
            200,
            #"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.example/doc/">"#
                + "<Prefix>pre/</Prefix><EncodingType>url</EncodingType>"
                + "<IsTruncated>\(isCut)</IsTruncated>\(contents.joined())</ListBucketResult>")
    }

    @Test func `names are those inside the remote, in order, without foreign ones`() async throws {
        let transport = FakeTransport { _ in
            Self.list([
                "pre/log/2", "pre/log/1", "pre%2Flog/3", "pre/log/0", "pre/log/A", "pre/log/",
                "other/log/4", "pre/snap/1",
            ])
        }
        let names = try await remote(transport).names(withPrefix: "log/", after: "log/0")
        #expect(names == ["log/1", "log/2", "log/3"])
        #expect(
            transport.requests.map(\.url) == [
                "https://s3.example/bucket?encoding-type=url&list-type=2&max-keys=1000"
                    + "&prefix=pre%2Flog%2F&start-after=pre%2Flog%2F0"
            ])
    }

    @Test(arguments: ["a b", "a%2Bb", "ü"])
    func `a prefix is found in whatever form its service writes it`(prefix: String) async throws {
        let plain = prefix.removingPercentEncoding ?? prefix
        let forms = [
            plain.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "",
            plain.replacing("+", with: "%2B").replacing(" ", with: "+"), plain,
        ]
        for form in forms {
            let transport = FakeTransport { _ in Self.list(["\(form)/log/1"]) }
            let url =
                "https://s3.example/bucket/"
                + (plain.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
            #expect(
                try await remote(transport, at: url).names(withPrefix: "", after: "") == ["log/1"])
        }
    }

    @Test func `a page of foreign names does not end the list`() async throws {
        let transport = FakeTransport { request in
            request.url.contains("start-after=pre%2FB")
                ? Self.list(["pre/a"]) : Self.list(["pre/A", "pre/B"], isCut: true)
        }
        #expect(try await remote(transport).names(withPrefix: "", after: "") == ["a"])
        let repeating = try remote(Self.list(["pre/A"], isCut: true))
        await expect(.remoteUnfit) { try await repeating.names(withPrefix: "", after: "") }
    }

    @Test(arguments: ["", "<html></html>", "text", "<ListBucketResult><Contents>"])
    func `what is no list is refused`(text: String) async throws {
        let remote = try remote(.text(200, text))
        await expect(.remoteUnfit) { try await remote.names(withPrefix: "", after: "") }
    }

    @Test func `a list refers to nothing outside it`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path("file")
        try Data("canary".utf8).write(to: URL(filePath: path))
        let text = """
            <!DOCTYPE l [<!ENTITY e SYSTEM "file://\(path)">]>
            <ListBucketResult><Contents><Key>pre/&e;</Key></Contents></ListBucketResult>
            """
        let names = try? await remote(.text(200, text)).names(withPrefix: "", after: "")
        #expect(names?.contains("canary") != true)
    }

    // MARK: Keys

    /// A file of credentials that is another one after the first request.
    private func changing(
        _ folder: TemporaryFolder, _ refusal: HTTPResponse
    ) throws -> (remote: S3Remote, transport: FakeTransport) {
        let path = folder.path("credentials")
        let write = { @Sendable (id: String) in
            let text = "[default]\naws_access_key_id=\(id)\naws_secret_access_key=s\n"
            _ = FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        }
        write("OLD")
        let transport = FakeTransport { request in
            write("NEW")
            return request.headers["authorization"]?.contains("Credential=NEW/") == true
                ? .text(200, "") : refusal
        }
        let remote = try S3Remote(
            "https://s3.example/b", credentials: .file(path), transport: transport)
        return (remote, transport)
    }

    @Test(arguments: [
        (400, "ExpiredToken"), (403, "ExpiredToken"), (403, "InvalidAccessKeyId"),
        (400, "TokenRefreshRequired"),
    ])
    func `a key that is not valid any longer is read again, once`(
        status: Int, code: String
    ) async throws {
        let folder = try TemporaryFolder()
        let (remote, transport) = try changing(folder, .error(status, code))
        #expect(try await remote.create("a", [1]).value == .created)
        #expect(transport.requests.count == 2)
        let refusing = FakeTransport { _ in .error(status, code) }
        let other = try S3Remote(
            "https://s3.example/b", credentials: .file(folder.path("credentials")),
            transport: refusing)
        await expect(.remoteDenied) { try await other.create("a", [1]) }
        #expect(refusing.requests.count == 2)
    }

    @Test func `a key that may not do this is not read again`() async throws {
        let folder = try TemporaryFolder()
        let (remote, transport) = try changing(folder, .error(403, "AccessDenied"))
        await expect(.remoteDenied) { try await remote.create("a", [1]) }
        #expect(transport.requests.count == 1)
    }

    @Test func `a key of the program has no other`() async throws {
        let transport = FakeTransport { _ in .error(403, "InvalidAccessKeyId") }
        let remote = try remote(transport)
        await expect(.remoteDenied) { try await remote.read("a") }
        #expect(transport.requests.count == 1)
    }

    // MARK: Dates

    @Test func `a date is read in its one form only`() {
        #expect(HTTPDate.date("Sun, 06 Nov 1994 08:49:37 GMT") == Self.time)
        let leapDay = HTTPDate.date("Tue, 29 Feb 2028 23:59:59 GMT")
        #expect(leapDay?.formatted(.iso8601) == "2028-02-29T23:59:59Z")
        for text in [
            nil, "", "1994-11-06", "Sunday, 06-Nov-94 08:49:37 GMT", "soon",
            "Mon, 31 Feb 2028 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET", " Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            #expect(HTTPDate.date(text) == nil)
        }
    }
}
