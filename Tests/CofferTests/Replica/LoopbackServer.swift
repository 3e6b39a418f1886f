import Foundation
import Synchronization

/// A server that gives the same bytes to every request, however wrong they are.
final class LoopbackServer: Sendable {
    /// The state of a connection after an answer.
    enum Ending: Sendable {
        /// The server closes it.
        case closed
        /// It stays as it is, and nothing more is read.
        case hanging
        /// The next request is read from it.
        case kept
        /// The server resets it when the next request has begun.
        case resetLater
    }

    private struct Log {
        var requests: [String] = []
        var connections: [Int32] = []
        /// Connections that are closed at the end.
        var open: [Int32] = []
    }

    let port: UInt16
    private let answer: [UInt8]
    private let ending: Ending
    private let listener: Int32
    private let log: LogBox

    /// Threads have the log, but not the server.
    private final class LogBox: Sendable {
        let log = Mutex(Log())
    }

    convenience init(answer: String, isHanging: Bool) throws {
        try self.init(answer: answer, ending: isHanging ? .hanging : .closed)
    }

    /// - Parameters:
    ///   - answer: What is sent once a request has come.
    ///   - ending: What becomes of the connection then.
    init(answer: String, ending: Ending = .closed) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (listener, total) = (listener, size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, total) == 0 && listen(listener, 8) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        let (bytes, log) = (Array(answer.utf8), LogBox())
        (self.answer, self.ending, self.log) = (bytes, ending, log)
        Thread.detachNewThread { Self.accept(listener, bytes, ending, log) }
    }

    deinit {
        // Ends the thread's wait too; closing the descriptor alone would not.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    var origin: String { "http://127.0.0.1:\(port)" }
    var url: String { "\(origin)/bucket" }

    /// The requests so far, from the method to the end of the body.
    var requests: [String] { log.log.withLock { $0.requests } }
    /// How many connections there were.
    var connectionCount: Int { log.log.withLock { $0.connections.count } }

    private static func accept(
        _ listener: Int32, _ answer: [UInt8], _ ending: Ending, _ log: LogBox
    ) {
        while true {
            let connection = Foundation.accept(listener, nil, nil)
            guard connection >= 0 else { break }
            log.log.withLock { $0.connections.append(connection) }
            Thread.detachNewThread { serve(connection, answer, ending, log) }
        }
        for connection in log.log.withLock({ $0.open }) { close(connection) }
        close(listener)
    }

    private static func serve(
        _ connection: Int32, _ answer: [UInt8], _ ending: Ending, _ log: LogBox
    ) {
        repeat {
            guard let request = read(connection) else { break }
            log.log.withLock { $0.requests.append(request) }
            _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
        } while ending == .kept
        if ending == .resetLater {
            var byte: UInt8 = 0
            recv(connection, &byte, 1, 0)
            // A close resets the connection if it does not wait for what was sent.
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                connection, SOL_SOCKET, SO_LINGER, &option,
                socklen_t(MemoryLayout<linger>.size))
        }
        if ending == .hanging {
            log.log.withLock { $0.open.append(connection) }
        } else {
            close(connection)
        }
    }

    /// A request with its body, or as much as there is; `nil` if there is none.
    private static func read(_ connection: Int32) -> String? {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var end = Int.max
        while text.count < end {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            text += buffer[..<count]
            guard end == .max, let head = text.firstRange(of: Array("\r\n\r\n".utf8)) else {
                continue
            }
            let length = String(decoding: text[..<head.lowerBound], as: UTF8.self)
                .firstMatch(of: /(?i)\r\ncontent-length: ([0-9]+)/)
            end = head.upperBound + (length.flatMap { Int($0.1) } ?? 0)
        }
        return text.isEmpty ? nil : String(decoding: text, as: UTF8.self)
    }
}
