import CTool
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A run of the tool for one store of a list, as a process of its own: a crash, a signal or a lock
/// of one store then leaves the others alone.
struct StoreRun {
    /// Its exit code; 256 and the number of the signal that ended it.
    let exitCode: Int32
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

    /// Starts the run and waits for its end.
    ///
    /// - Parameters:
    ///   - arguments: The arguments without the name of the tool. Both outputs are JSON.
    ///   - started: Gets the number of the process.
    ///   - ends: Called before the number of the process is free for another one.
    /// - Throws: `ToolError` `.io` if it cannot be started.
    init(
        _ arguments: [String], _ secret: ListSecret, started: (Int32) -> Void, ends: (Int32) -> Void
    ) throws {
        let (process, output, errors) = try Self.start(
            arguments + ["--json", "--progress=none"], secret)
        started(process)
        let (report, lines) = Self.readAll(output, errors, of: process)
        ends(process)
        exitCode = coffer_wait_for_command(process, 1, -1)
        self.report = report
        // A command for a secret may have written lines of its own, for whoever runs this.
        var all = lines.split(separator: UInt8(ascii: "\n"))
        let last = all.lastIndex { $0.first == UInt8(ascii: "{") }
        let own = last.flatMap { try? JSONDecoder().decode(Messages.self, from: all[$0]) }
        if let last, own != nil { all.remove(at: last) }
        messages = own ?? Messages()
        for line in all { Terminal.write(String(decoding: line, as: UTF8.self)) }
    }

    /// The file of this program: the same, even if another version has been installed meanwhile.
    private static var program: String {
        #if canImport(Darwin)
        Bundle.main.executablePath ?? CommandLine.arguments[0]
        #else
        "/proc/self/exe"
        #endif
    }

    private static func start(
        _ arguments: [String], _ secret: ListSecret
    ) throws -> (process: Int32, output: FileDescriptor, errors: FileDescriptor) {
        do {
            let input = try Self.input(secret)
            defer { try? input.close() }
            let output = try closedInOthers(FileDescriptor.pipe())
            defer { try? output.writeEnd.close() }
            let errors = try closedInOthers(FileDescriptor.pipe())
            defer { try? errors.writeEnd.close() }
            var words = ([program] + arguments).map { strdup($0) } + [nil]
            defer { for word in words { free(word) } }
            let process = coffer_start_program(
                &words, input.rawValue, output.writeEnd.rawValue, errors.writeEnd.rawValue)
            guard process > 0 else { throw Errno(rawValue: -process) }
            return (process, output.readEnd, errors.readEnd)
        } catch {
            throw ToolError(.io, "a run of coffer cannot be started: \(error)")
        }
    }

    /// The standard input of the run.
    private static func input(_ secret: ListSecret) throws -> FileDescriptor {
        guard secret.isShared else {
            return try FileDescriptor.open("/dev/null", .readOnly, options: .closeOnExec)
        }
        let pipe = try closedInOthers(FileDescriptor.pipe())
        defer { try? pipe.writeEnd.close() }
        try secret.write(to: pipe.writeEnd)
        return pipe.readEnd
    }

    private typealias Pipe = (readEnd: FileDescriptor, writeEnd: FileDescriptor)

    private static func closedInOthers(_ pipe: Pipe) -> Pipe {
        for end in [pipe.readEnd, pipe.writeEnd] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
        return pipe
    }

    /// The most bytes of an output that are kept. A report is far smaller.
    private static let byteCountMax = 64 << 20

    /// Reads both outputs to their ends, and closes them.
    ///
    /// A command for the secret may outlive the run, and holds its standard error. So the end of
    /// the process is the end too, once what it has written is read.
    private static func readAll(
        _ output: FileDescriptor, _ errors: FileDescriptor, of process: Int32
    ) -> (Data, Data) {
        var read = [Data(), Data()]
        var open = [
            pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: errors.rawValue, events: Int16(POLLIN), revents: 0),
        ]
        // After the end of the process, only the bytes in the buffers of the pipes are left to
        // read. A program that it has started may go on writing.
        var restCount = 2 << 20
        while open.contains(where: { $0.fd >= 0 }), restCount > 0 {
            let hadEnded = coffer_program_has_ended(process) != 0
            let count = poll(&open, nfds_t(open.count), hadEnded ? 0 : 100)
            guard count > 0 || !hadEnded, count >= 0 || errno == EINTR else { break }
            for index in open.indices where open[index].fd >= 0 && open[index].revents != 0 {
                let bytes = (try? bytes(of: FileDescriptor(rawValue: open[index].fd))) ?? []
                if hadEnded { restCount -= bytes.count }
                read[index] += bytes
                if read[index].count > byteCountMax { read[index].removeFirst(byteCountMax / 2) }
                // poll(2) passes over a negative descriptor.
                if bytes.isEmpty { open[index].fd = -1 }
            }
        }
        try? output.close()
        try? errors.close()
        return (read[0], read[1])
    }

    private static func bytes(of file: FileDescriptor) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: 1 << 14) { buffer, count in
            count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
