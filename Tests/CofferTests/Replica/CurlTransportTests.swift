import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

#if os(Linux)
/// Compares the bytes that libcurl sends and accepts with those that the protocol asks for.
@Suite(.againstHanging, .onOwnThreads) struct CurlTransportTests {
    private static let canary = "canary-7c1e"
    private static let fine = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    // MARK: Requests

    @Test(arguments: [
        ("GET", nil), ("DELETE", nil), ("PUT", 0), ("PUT", 5), ("PUT", 3 << 20),
    ])
    func `a request has the headers that it was given, its host and its length`(
        method: String, byteCount: Int?
    ) async throws {
        let server = try LoopbackServer(answer: Self.fine)
        let body = [UInt8](repeating: 0x61, count: byteCount ?? 0)
        let response = try await CurlTransport().send(
            HTTPRequest(
                method: method, url: "\(server.origin)/a/../b%20c/./?x=%2F&y",
                headers: ["authorization": "A b=c", "x-amz-date": "1", "x-empty": ""], body: body))
        #expect(response.status == 200)
        let request = try #require(server.requests.first)
        let parts = request.split(separator: "\r\n\r\n", maxSplits: 1)
        let lines = try #require(parts.first).split(separator: "\r\n").map(String.init)
        #expect(lines.first == "\(method) /a/../b%20c/./?x=%2F&y HTTP/1.1")
        let headers = ["authorization: A b=c", "x-amz-date: 1", "x-empty:"]
        let own =
            ["Host: 127.0.0.1:\(server.port)"] + (byteCount.map { ["Content-Length: \($0)"] } ?? [])
        #expect(lines.dropFirst().sorted() == (headers + own).sorted())
        #expect(parts.dropFirst().first.map { Array($0.utf8) } ?? [] == body)
    }

    @Test(arguments: [
        ["x-a": "b\r\nx-amz-c: d"], ["x-a": "b\nc"], ["x-a: b\r\nx-c": "d"], ["": "a"],
        ["x-a": "b\0c"],
    ])
    func `a header that would become two is refused`(headers: [String: String]) async throws {
        let server = try LoopbackServer(answer: Self.fine)
        let error = await expect(.misuse) {
            try await CurlTransport().send(
                HTTPRequest(method: "GET", url: server.url, headers: headers))
        }
        #expect(error?.message.contains("x-") == false)
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: [
        "file:///etc/passwd", "ftp://127.0.0.1/a", "127.0.0.1/a", "http://127.0.0.1/a b",
        "http://127.0.0.1:99999/", "http://", "",
    ])
    func `a URL of another protocol is refused`(url: String) async throws {
        await expect(.misuse) {
            try await CurlTransport().send(HTTPRequest(method: "GET", url: url))
        }
    }

    // MARK: Answers

    @Test func `the head is that of the answer, without those before and lines after it`()
        async throws
    {
        let server = try LoopbackServer(
            answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
                + "HTTP/1.1 404 Not Found\r\nX-A: 1\r\nx-a:  2 \r\nTransfer-Encoding: chunked\r\n"
                + "Set-Cookie: a=b\r\n\r\n5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n",
            ending: .kept)
        let transport = CurlTransport()
        for _ in 0..<2 {
            let response = try await transport.send(HTTPRequest(method: "GET", url: server.url))
            #expect(response.status == 404)
            #expect(
                response.headers == [
                    "x-a": "1, 2", "transfer-encoding": "chunked", "set-cookie": "a=b",
                ])
            #expect(response.body == Array("hello".utf8))
        }
        // No cookie came back.
        #expect(server.requests.allSatisfy { !$0.contains("a=b") })
    }

    @Test func `a body of exactly the limit is taken, and one byte more is not`() async throws {
        let server = try LoopbackServer(answer: Self.fine)
        let exact = HTTPRequest(method: "GET", url: server.url, byteCountMax: 5)
        #expect(try await CurlTransport().send(exact).body == Array("hello".utf8))
        await expect(.remoteUnfit) {
            try await CurlTransport().send(
                HTTPRequest(method: "GET", url: server.url, byteCountMax: 4))
        }
    }

    // MARK: Connections

    @Test func `a connection is used again`() async throws {
        let server = try LoopbackServer(answer: Self.fine, ending: .kept)
        let transport = CurlTransport()
        for method in ["GET", "PUT", "DELETE"] {
            let request = HTTPRequest(method: method, url: server.url)
            #expect(try await transport.send(request).body == Array("hello".utf8))
        }
        #expect(server.requests.count == 3)
        #expect(server.connectionCount == 1)
    }

    @Test func `a connection that the server has closed is replaced`() async throws {
        let server = try LoopbackServer(answer: Self.fine)
        let transport = CurlTransport()
        for _ in 0..<20 {
            let response = try await transport.send(
                HTTPRequest(method: "PUT", url: server.url, body: [1, 2, 3]))
            #expect(response.status == 200)
        }
    }

    @Test func `a connection that breaks below a body is replaced`() async throws {
        let server = try LoopbackServer(answer: Self.fine, ending: .resetLater)
        let transport = CurlTransport()
        let body = [UInt8](repeating: 7, count: 8 << 20)
        for _ in 0..<20 {
            let response = try await transport.send(
                HTTPRequest(method: "PUT", url: server.url, body: body))
            #expect(response.status == 200)
        }
        #expect(server.connectionCount == 20)
    }

    @Test func `many requests at once share the connections`() async throws {
        let server = try LoopbackServer(answer: Self.fine, ending: .kept)
        let transport = CurlTransport(connectionCountMax: 3)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<60 {
                group.addTask {
                    try await transport.send(
                        HTTPRequest(method: "PUT", url: "\(server.url)/\(number)", body: [1])
                    ).status
                }
            }
            for try await status in group { #expect(status == 200) }
        }
        #expect(Set(server.requests).count == 60)
        #expect(server.connectionCount <= 3)
    }

    @Test func `a request that waits for a connection is given up in time, or cancelled`()
        async throws
    {
        let server = try LoopbackServer(answer: "", ending: .hanging)
        let transport = CurlTransport(connectionCountMax: 1)
        let first = Task {
            try await transport.send(HTTPRequest(method: "GET", url: server.url))
        }
        #expect(await comes { !server.requests.isEmpty })
        await expect(.remoteUnavailable) {
            try await transport.send(
                HTTPRequest(method: "GET", url: server.url, timeout: .milliseconds(200)))
        }
        let second = Task {
            try await transport.send(HTTPRequest(method: "GET", url: server.url))
        }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(server.connectionCount == 1)
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
    }

    @Test func `a cancelled request ends at once, and others go on`() async throws {
        let hanging = try LoopbackServer(answer: "HTTP/1.1 200 OK\r\n\r\nhel", ending: .hanging)
        let server = try LoopbackServer(answer: Self.fine, ending: .kept)
        let transport = CurlTransport()
        let task = Task {
            try await transport.send(HTTPRequest(method: "GET", url: hanging.url))
        }
        #expect(await comes { !hanging.requests.isEmpty })
        let clock = ContinuousClock()
        let duration = await clock.measure {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(duration < .seconds(10))
        let request = HTTPRequest(method: "GET", url: server.url)
        #expect(try await transport.send(request).status == 200)
    }

    // MARK: The library

    /// The second one is a library, but has no function of libcurl.
    @Test(arguments: ["libcurl-of-nobody.so.4", "libc.so.6"])
    func `a libcurl that cannot be loaded is unsupported`(name: String) async throws {
        let server = try LoopbackServer(answer: Self.fine)
        let transport = CurlTransport(libraries: [name])
        let request = HTTPRequest(
            method: "GET", url: server.url, headers: ["authorization": Self.canary])
        for _ in 0..<2 {
            let error = await expect(.unsupported) { try await transport.send(request) }
            #expect(error?.hint?.contains("apt install libcurl4") == true)
            #expect("\(error as Any)".contains(Self.canary) == false)
        }
        let other = CurlTransport(libraries: [name] + Curl.usualNames)
        #expect(try await other.send(request).status == 200)
    }

    // MARK: Certificates

    @Test(.enabled(if: TLSServer.canRun || Repository.isCI, "openssl is not installed"))
    func `a server is refused unless its certificate is trusted and of its name`()
        async throws
    {
        let server = try TLSServer()
        let send = { (host: String, trust: CurlTrust) in
            try await CurlTransport(trust: trust).send(
                HTTPRequest(
                    method: "GET", url: "https://\(host):\(server.port)/",
                    headers: ["authorization": Self.canary]))
        }
        let usual = CurlTrust()
        let own = CurlTrust(["SSL_CERT_FILE": server.certificate])
        for (host, trust) in [("127.0.0.1", usual), ("localhost", own)] {
            let error = await expect(.remoteUnavailable) { try await send(host, trust) }
            #expect("\(error as Any)".contains(Self.canary) == false)
            #expect("\(error as Any)".contains("certificate"))
        }
        #expect(try await send("127.0.0.1", own).status == 200)
    }

    @Test func `the environment names certificates, and an empty variable none`() {
        let trust = CurlTrust(["SSL_CERT_FILE": "/a", "SSL_CERT_DIR": ""])
        #expect(trust.file == "/a")
        #expect(trust.folder == nil)
    }
}

/// A server for TLS at 127.0.0.1, whose certificate nobody has signed but itself.
private struct TLSServer {
    let port: Int
    let certificate: String
    private let folder: TemporaryFolder
    private let server: LocalServer

    private static let openssl = "/usr/bin/openssl"
    static let canRun = FileManager.default.isExecutableFile(atPath: openssl)

    init() throws {
        folder = try TemporaryFolder()
        certificate = folder.path("certificate")
        let key = folder.path("key")
        let maker = Process()
        maker.executableURL = URL(filePath: Self.openssl)
        maker.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
            "-subj", "/CN=coffer", "-addext", "subjectAltName=IP:127.0.0.1",
        ]
        maker.standardError = FileHandle.nullDevice
        try maker.run()
        maker.waitUntilExit()
        try #require(maker.terminationStatus == 0, "openssl makes no certificate")
        server = try LocalServer(
            Self.openssl,
            [
                "s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate, "-www",
            ], on: .output, /ACCEPT [^ \n]*:([0-9]+)\n/)
        port = try #require(Int(server.place))
    }
}
#endif
