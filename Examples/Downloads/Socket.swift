import Foundation

/// A socket of this machine, closed when nobody has it any longer.
final class Socket: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Listens at a free port of the loopback interface.
    static func listening() throws -> (socket: Socket, port: UInt16) {
        #if canImport(Darwin)
        let stream = SOCK_STREAM
        #else
        let stream = Int32(SOCK_STREAM.rawValue)
        #endif
        let descriptor = Foundation.socket(AF_INET, stream, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        let listener = Socket(descriptor)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && listen(descriptor, 128) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw SystemError("bind") }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    /// Waits for the next caller; `nil` when the system gives none any longer.
    ///
    /// Few bytes are on the way to a caller at a time, as in a real network.
    func accept() -> Socket? {
        let caller = Foundation.accept(descriptor, nil, nil)
        guard caller >= 0 else { return nil }
        _ = fcntl(caller, F_SETFD, FD_CLOEXEC)
        var byteCount: Int32 = 32_768
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(caller, SOL_SOCKET, SO_SNDBUF, &byteCount, size)
        return Socket(caller)
    }

    /// The lines of a request up to the empty one; `nil` if the caller hangs up or sends too many.
    func readHead() -> [String]? {
        var bytes: [UInt8] = []
        while bytes.count < 16_384 {
            var buffer = [UInt8](repeating: 0, count: 2048)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            bytes += buffer.prefix(count)
            if bytes.suffix(4) == [13, 10, 13, 10] {
                return String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
            }
        }
        return nil
    }

    /// - Returns: Whether all of it has gone.
    func write(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, 0)
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Makes the end a reset: what is still on the way is lost.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, size)
    }
}
