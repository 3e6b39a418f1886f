import Foundation

/// A server that gives the same bytes to every request, however wrong they are.
final class LoopbackServer: Sendable {
    let port: UInt16
    private let listener: Int32

    /// - Parameters:
    ///   - answer: What is sent once the request's headers have come. The connection ends then.
    ///   - isHanging: Whether the connection stays as it is after the answer.
    init(answer: String, isHanging: Bool = false) throws {
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
        Thread.detachNewThread { Self.serve(listener, Array(answer.utf8), isHanging) }
    }

    deinit {
        // Ends the thread's wait too; closing the descriptor alone would not.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    var url: String { "http://127.0.0.1:\(port)/bucket" }

    private static func serve(_ listener: Int32, _ answer: [UInt8], _ isHanging: Bool) {
        var hanging: [Int32] = []
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while !String(decoding: text, as: UTF8.self).contains("\r\n\r\n") {
                let count = recv(connection, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                text += buffer[..<count]
            }
            _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
            if isHanging { hanging.append(connection) } else { close(connection) }
        }
        for connection in hanging { close(connection) }
        close(listener)
    }
}
