#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The program that has started this one and waits for it to be ready.
///
/// > The service manager sends notifications over an AF_UNIX datagram socket.
///
/// <https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>
enum Supervisor {
    /// Whether a supervisor waits for messages.
    static var isThere: Bool { socketName != nil }

    private static var socketName: String? {
        guard let name = getenv("NOTIFY_SOCKET").map({ String(cString: $0) }),
            name.hasPrefix("/") || name.hasPrefix("@")
        else { return nil }
        return name
    }

    /// Runs the work that a SIGHUP of the supervisor asks for. Says that the service is ready again
    /// if it returns `true`.
    ///
    /// > … contains the "RELOADING=1" field in combination with "MONOTONIC_USEC=" set to the
    /// > current monotonic time (i.e. CLOCK_MONOTONIC in clock_gettime(2)) in μs, formatted as
    /// > decimal string.
    ///
    /// <https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Type=>
    static func reloading(_ work: () async -> Bool) async {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let microseconds = Int(now.tv_sec) * 1_000_000 + now.tv_nsec / 1000
        notify("RELOADING=1\nMONOTONIC_USEC=\(microseconds)")
        if await waiting(work) { notify("READY=1") }
    }

    /// Runs work that may take longer than the supervisor waits, and asks it for more time.
    ///
    /// > Tells the service manager to extend the startup, runtime or shutdown service timeout
    /// > corresponding the current state. The value is a time in microseconds during which the
    /// > service must send a new message.
    static func waiting<T>(_ work: () async throws -> T) async rethrows -> T {
        let asking = Task {
            while !Task.isCancelled {
                notify("EXTEND_TIMEOUT_USEC=30000000")
                try? await Task.sleep(for: .seconds(10))
            }
        }
        defer { asking.cancel() }
        return try await work()
    }

    /// Tells the supervisor, if there is one.
    static func notify(_ message: String) {
        guard let name = socketName else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        // An abstract name begins with a zero.
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard bytes.count < capacity else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_CLOEXEC, 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = sendto(
                    descriptor, message, message.utf8.count, 0, address,
                    socklen_t(offset + bytes.count))
            }
        }
    }
}
