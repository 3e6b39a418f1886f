import Foundation
import Testing

@testable import Coffer
@testable import CofferReplica

#if os(Linux)
/// libcurl against servers that misbehave.
@Suite(.againstHanging, .onOwnThreads) struct S3TransportTests {
    private func remote(
        _ server: LoopbackServer, timeout: Duration = .seconds(60)
    ) throws
        -> S3Remote
    {
        try S3Remote(
            server.url, credentials: .keys(accessKeyID: "a", secretAccessKey: "b"),
            timeout: timeout)
    }

    @Test func `an answer comes with its headers and its body`() async throws {
        let server = try LoopbackServer(
            answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
                + "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nhello")
        let answer = try await remote(server).read("a")
        #expect(answer.value == Array("hello".utf8))
        #expect(answer.time == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [301, 302, 307, 308])
    func `a redirect is not followed`(status: Int) async throws {
        let target = try LoopbackServer(
            answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        let server = try LoopbackServer(
            answer: "HTTP/1.1 \(status) Moved\r\nContent-Length: 0\r\n"
                + "Location: http://localhost:\(target.port)/bucket/a\r\n\r\n")
        for work in [
            { try await remote(server).read("a") as Any },
            { try await remote(server).create("a", [1]) as Any },
        ] {
            let error = await expect(.misuse) { try await work() }
            #expect(error?.hint == "The service names the host localhost.")
        }
    }

    @Test func `a body that ends early is unavailable`() async throws {
        for answer in ["Content-Length: 10\r\n\r\nhello", "\r\nhello"] {
            let server = try LoopbackServer(answer: "HTTP/1.1 200 OK\r\n\(answer)")
            await expect(.remoteUnavailable) { try await remote(server).read("a") }
        }
    }

    @Test func `a body without an end is refused`() async throws {
        let zeros = String(repeating: "0", count: 200_000)
        let server = try LoopbackServer(answer: "HTTP/1.1 200 OK\r\n\r\n\(zeros)", isHanging: true)
        // A deletion is answered by a few bytes at most.
        let error = await expect(.remoteUnfit) { try await remote(server).delete("a") }
        #expect(error?.message.contains("65536 bytes") == true)
    }

    @Test func `a long text of an error is cut, and its status counts`() async throws {
        let zeros = String(repeating: "0", count: 200_000)
        let server = try LoopbackServer(
            answer: "HTTP/1.1 503 Busy\r\n\r\n\(zeros)", isHanging: true)
        await expect(.remoteUnavailable) { try await remote(server).delete("a") }
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"])
    func `a server that stops answering is given up after the time-out`(
        answer: String
    ) async throws {
        let server = try LoopbackServer(answer: answer, isHanging: true)
        let error = await expect(.remoteUnavailable) {
            try await remote(server, timeout: .milliseconds(300)).read("a")
        }
        #expect(error?.message.contains("0.3 s") == true)
    }

    @Test func `a cancelled task does not wait for an answer`() async throws {
        let server = try LoopbackServer(answer: "", isHanging: true)
        let remote = try remote(server)
        let task = Task { try await remote.read("a") }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a port that nobody listens at is unavailable`() async throws {
        let url = try LoopbackServer(answer: "").url
        let remote = try S3Remote(url, credentials: .keys(accessKeyID: "a", secretAccessKey: "b"))
        let error = await expect(.remoteUnavailable) { try await remote.create("a", [1]) }
        #expect(error?.message.contains("Authorization") == false)
    }

    @Test func `what is no HTTP is unavailable`() async throws {
        let server = try LoopbackServer(answer: "220 mail.example ESMTP\r\n")
        await expect(.remoteUnavailable) { try await remote(server).read("a") }
    }
}
#endif
