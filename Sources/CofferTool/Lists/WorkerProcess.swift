import CTool
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A process of the tool that works on one store of a list after another, as a `Worker`.
struct WorkerProcess {
    /// Its number.
    let id: Int32
    /// Whether it has had a run.
    var isUsed = false
    private let socket: FileDescriptor

    /// Starts the process.
    ///
    /// - Throws: `Errno`.
    init() throws {
        let words = [Self.program, Worker.argument]
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var socket: Int32 = -1
        id = coffer_start_worker(&pointers, &socket)
        guard id > 0 else { throw Errno(rawValue: -id) }
        self.socket = FileDescriptor(rawValue: socket)
    }

    /// The file of this program: the same, even if another version has been installed meanwhile.
    private static var program: String {
        #if canImport(Darwin)
        Bundle.main.executablePath ?? CommandLine.arguments[0]
        #else
        "/proc/self/exe"
        #endif
    }

    /// Begins a run.
    ///
    /// - Parameters:
    ///   - arguments: The arguments without the name of the tool.
    ///   - files: What becomes its standard input, output and error; the caller closes its own.
    /// - Returns: Whether the process has the run: `false` if it has ended before.
    /// - Throws: `Errno`.
    func begin(_ arguments: [String], _ files: [FileDescriptor]) throws -> Bool {
        // No argument has a NUL: each was one of a process, or was read from a list.
        let bytes = Array(arguments.joined(separator: "\0").utf8)
        let error = coffer_send_run(
            socket.rawValue, bytes, UInt32(bytes.count), files.map(\.rawValue))
        if error == EPIPE || error == ECONNRESET { return false }
        guard error == 0 else { throw Errno(rawValue: error) }
        return true
    }

    /// Becomes readable when the run has ended, or the process.
    var end: Int32 { socket.rawValue }

    /// Takes the end of the run; `nil` if the process ended before, or cannot tell.
    func takeEnd() -> coffer_run_end? {
        var end = coffer_run_end()
        let count = withUnsafeMutableBytes(of: &end) { try? socket.read(into: $0) }
        return count == MemoryLayout<coffer_run_end>.size ? end : nil
    }

    /// Ends the process as soon as it has nothing to do.
    func close() {
        try? socket.close()
    }

    /// Waits for the end of a process that was told to end.
    ///
    /// - Parameter milliseconds: How long to wait before it is killed; -1 to wait for its own end.
    /// - Returns: Its exit code; 256 and the number of the signal that ended it.
    @discardableResult
    func wait(atMost milliseconds: Int32) -> Int32 {
        coffer_wait_for_command(id, 0, milliseconds)
    }
}
