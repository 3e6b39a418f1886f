import CTool
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A run of the tool for one store of a list, in another process: a crash, a signal or a lock of
/// one store then leaves the others alone.
struct StoreRun {
    /// Its exit code; 256 and the number of the signal that ended it.
    let exitCode: Int32
    /// Whether its process takes another run.
    let leavesWorker: Bool
    /// The object on standard output; empty without one.
    let report: Data
    let messages: Messages

    /// The object on standard error.
    struct Messages: Decodable {
        struct Failure: Decodable {
            let code: String
            let message: String
            let hint: String?
        }

        var warnings: [String] = []
        var error: Failure?

        private enum CodingKeys: CodingKey { case warnings, error }

        init() {}

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            warnings = try container.decodeIfPresent([String].self, forKey: .warnings) ?? []
            error = try container.decodeIfPresent(Failure.self, forKey: .error)
        }
    }

    /// How it ended, for a run that gives no reason.
    var endText: String {
        if let status = ExitStatus(rawValue: exitCode) { return status.meaning }
        return exitCode < 256
            ? "its run ended with exit code \(exitCode)"
            : "its run was ended by signal \(exitCode - 256)"
    }

    /// Begins the run and waits for its end.
    ///
    /// - Parameters:
    ///   - arguments: The arguments without the name of the tool. Both outputs are JSON.
    ///   - lost: Waits for the process if it ends before the run, and returns its exit code.
    /// - Returns: `nil` if the process has ended before the run.
    /// - Throws: `ToolError` `.io` if the run cannot begin.
    init?(
        _ arguments: [String], _ secret: ListSecret, in worker: WorkerProcess,
        lost: () -> Int32
    ) throws {
        guard
            let (output, errors) = try Self.begin(
                arguments + ["--json", "--progress=none"], secret, worker)
        else { return nil }
        let (report, lines, end) = Self.readAll(output, errors, of: worker)
        self.report = report
        leavesWorker = end?.is_last == 0
        // A run that has not told its end is not a success, whatever its process says.
        exitCode = end?.code ?? Self.failure(lost())
        // A command for a secret may have written lines of its own, for whoever runs this.
        var all = lines.split(separator: UInt8(ascii: "\n"))
        let last = all.lastIndex { $0.first == UInt8(ascii: "{") }
        let own = last.flatMap { try? JSONDecoder().decode(Messages.self, from: all[$0]) }
        if let last, own != nil { all.remove(at: last) }
        messages = own ?? Messages()
        for line in all { Terminal.write(String(decoding: line, as: UTF8.self)) }
    }

    /// The exit code of a run whose process has ended before it, with this code.
    static func failure(_ code: Int32) -> Int32 {
        switch code {
        case ExitStatus.success.rawValue: ExitStatus.failure.rawValue
        // It had no time to handle the signal of the list.
        case 256 + SIGTERM, 256 + SIGINT: ExitStatus.interrupted.rawValue
        default: code
        }
    }

    private static func begin(
        _ arguments: [String], _ secret: ListSecret, _ worker: WorkerProcess
    ) throws -> (output: FileDescriptor, errors: FileDescriptor)? {
        do {
            let input = try Self.input(secret)
            defer { try? input.close() }
            var isBegun = false
            let output = try closedInOthers(FileDescriptor.pipe())
            defer { close(output, keepingReadEnd: isBegun) }
            let errors = try closedInOthers(FileDescriptor.pipe())
            defer { close(errors, keepingReadEnd: isBegun) }
            isBegun = try worker.begin(arguments, [input, output.writeEnd, errors.writeEnd])
            return isBegun ? (output.readEnd, errors.readEnd) : nil
        } catch {
            throw cannotStart(error)
        }
    }

    static func cannotStart(_ cause: any Error) -> ToolError {
        ToolError(.io, "a run of coffer cannot be started: \(cause)")
    }

    /// The standard input of the run.
    private static func input(_ secret: ListSecret) throws -> FileDescriptor {
        guard secret.isShared else {
            return try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec)
        }
        let pipe = try closedInOthers(FileDescriptor.pipe())
        var isWritten = false
        defer { close(pipe, keepingReadEnd: isWritten) }
        try secret.write(to: pipe.writeEnd)
        isWritten = true
        return pipe.readEnd
    }

    private typealias Pipe = (readEnd: FileDescriptor, writeEnd: FileDescriptor)

    private static func close(_ pipe: Pipe, keepingReadEnd: Bool) {
        try? pipe.writeEnd.close()
        if !keepingReadEnd { try? pipe.readEnd.close() }
    }

    private static func closedInOthers(_ pipe: Pipe) -> Pipe {
        for end in [pipe.readEnd, pipe.writeEnd] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
        return pipe
    }

    /// The most bytes of an output that are kept. A report is far smaller.
    private static let byteCountMax = 64 << 20

    /// Reads both outputs to their ends, and closes them.
    ///
    /// A command for the secret may outlive the run, and holds its standard error. So the end of
    /// the run is the end too, once what it has written is read.
    private static func readAll(
        _ output: FileDescriptor, _ errors: FileDescriptor, of worker: WorkerProcess
    ) -> (report: Data, lines: Data, end: coffer_run_end?) {
        var read = [Data(), Data()]
        var end: coffer_run_end?
        var open = [output.rawValue, errors.rawValue, worker.end].map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        // After the end of the run, only the bytes in the buffers of the pipes are left to read. A
        // program that it has started may go on writing.
        var restCount = 2 << 20
        while open.contains(where: { $0.fd >= 0 }), restCount > 0 {
            let hadEnded = open[2].fd < 0
            let count = poll(&open, nfds_t(open.count), hadEnded ? 0 : -1)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            for index in 0..<2 where open[index].fd >= 0 && open[index].revents != 0 {
                let bytes = (try? bytes(of: FileDescriptor(rawValue: open[index].fd))) ?? []
                if hadEnded { restCount -= bytes.count }
                read[index] += bytes
                if read[index].count > byteCountMax { read[index].removeFirst(byteCountMax / 2) }
                // poll(2) passes over a negative descriptor.
                if bytes.isEmpty { open[index].fd = -1 }
            }
            if !hadEnded, open[2].revents != 0 {
                end = worker.takeEnd()
                open[2].fd = -1
            }
        }
        try? output.close()
        try? errors.close()
        return (read[0], read[1], end)
    }

    private static func bytes(of file: FileDescriptor) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, count in
            count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
