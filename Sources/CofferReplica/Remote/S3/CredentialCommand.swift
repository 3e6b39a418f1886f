import Coffer
import Dispatch
import Foundation

/// Runs a command that writes credentials to its standard output.
enum CredentialCommand {
    private static let byteCountMax = 64 << 10

    /// Blocks the thread until the command has ended.
    ///
    /// - Parameters:
    ///   - words: The path of the program, and its arguments.
    ///   - timeout: The time after which the command is killed.
    /// - Throws: `.remoteDenied` if the command failed, `.misuse` if it cannot be run.
    static func keys(
        _ words: [String], timeout: Duration = .seconds(60)
    ) throws(StoreError) -> S3Keys {
        let source = "the command \(words[0])"
        let deadline = ContinuousClock.now + timeout
        let process = Process()
        process.executableURL = URL(filePath: words[0])
        process.arguments = Array(words.dropFirst())
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        process.standardOutput = output
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        do {
            try process.run()
        } catch {
            throw StoreError(
                .misuse, "cannot run \(source) for credentials",
                hint: "Give the whole path of a program that this user may run.")
        }
        // In one piece: an array that grows leaves copies behind.
        var bytes = [UInt8](repeating: 0, count: byteCountMax + 1)
        defer { bytes.withUnsafeMutableBytes { $0.wipe() } }
        let descriptor = output.fileHandleForReading.fileDescriptor
        let count = bytes.withUnsafeMutableBytes { read(descriptor, into: $0, until: deadline) }
        let rest = max(0, (deadline - .now) / .seconds(1))
        guard let count, ended.wait(timeout: .now() + rest) == .success else {
            // A thread of Dispatch blocks SIGTERM, and the command has inherited that. The number
            // of a command that has ended may be that of another process by now.
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            throw StoreError(
                .remoteDenied,
                "\(source) did not write credentials within \(timeout / .seconds(1)) s")
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw StoreError(
                .remoteDenied, "\(source) for credentials failed",
                hint: "It ended with \(process.terminationStatus). Run it by itself.")
        }
        var document = Array(bytes[..<count])
        defer { document.withUnsafeMutableBytes { $0.wipe() } }
        return try CredentialDocument.keys(in: document, isOfCommand: true, source: source)
    }

    /// Reads until the end, or until the buffer is full.
    ///
    /// - Returns: How many bytes; `nil` if they did not end in time or were too many.
    private static func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer,
        until deadline: ContinuousClock.Instant
    ) -> Int? {
        var count = 0
        while count < buffer.count {
            let rest = max(0, (deadline - .now) / .milliseconds(1))
            var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&state, 1, Int32(min(rest.rounded(.up), 60_000)))
            if ready < 0 && errno == EINTR { continue }
            guard ready > 0 else { return nil }
            let free = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let size = Foundation.read(descriptor, free.baseAddress, free.count)
            if size < 0 && errno == EINTR { continue }
            guard size > 0 else { return size == 0 ? count : nil }
            count += size
        }
        return nil
    }
}
