import CofferReplica
import Synchronization

/// A service that answers as a test says, and remembers what it was asked.
final class FakeTransport: HTTPTransport {
    private let answer: @Sendable (HTTPRequest) throws -> HTTPResponse
    private let asked = Mutex<[HTTPRequest]>([])

    init(_ answer: @escaping @Sendable (HTTPRequest) throws -> HTTPResponse) {
        self.answer = answer
    }

    var requests: [HTTPRequest] { asked.withLock { $0 } }

    func send(_ request: HTTPRequest) async throws -> HTTPResponse {
        asked.withLock { $0.append(request) }
        return try answer(request)
    }
}

extension HTTPResponse {
    /// An answer with the headers that every service gives.
    static func text(
        _ status: Int, _ text: String, _ headers: [String: String] = [:]
    ) -> HTTPResponse {
        let own = [
            "Content-Length": "\(text.utf8.count)", "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
        ]
        return HTTPResponse(
            status: status, headers: own.merging(headers) { $1 }, body: Array(text.utf8))
    }

    /// An error as services of storage write it.
    static func error(
        _ status: Int, _ code: String, _ more: String = "", _ headers: [String: String] = [:]
    ) -> HTTPResponse {
        .text(
            status,
            #"<?xml version="1.0" encoding="UTF-8"?>"#
                + "<Error><Code>\(code)</Code>\(more)<RequestId>1</RequestId></Error>",
            headers)
    }
}
