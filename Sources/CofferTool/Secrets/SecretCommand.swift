import CTool
import SystemPackage

/// Runs a shell command whose output is the secret.
///
/// The command inherits the environment, standard input, standard error and the terminal, so that
/// it can prompt on its own. If the verb reads its data from standard input, the command gets none
/// of it.
struct SecretCommand {
    private let command: String
    private let source: SecretSource

    init(_ command: String, _ source: SecretSource) {
        self.command = command
        self.source = source
    }

    /// - Throws: `ToolError` `.secretSource` if the command fails. The command writes its own error
    ///   to standard error.
    func run(into bytes: UnsafeMutableRawBufferPointer) throws -> Int {
        // It would take the first rows of an import.
        let input = StandardInput.isClaimed ? try FileDescriptor.open("/dev/null", .readOnly) : nil
        defer { try? input?.close() }
        var output: Int32 = -1
        return try Signals.running {
            let process = coffer_start_command(command, input?.rawValue ?? -1, &output)
            guard process > 0 else {
                throw ToolError(
                    .secretSource,
                    "\(source.description) cannot be run: \(Errno(rawValue: -process))")
            }
            return process
        } _: { process in
            let reading = FileDescriptor(rawValue: output)
            let count = Result { try SecretReader.readAll(reading, source, into: bytes) }
            // Closing the pipe stops a command that keeps writing, perhaps without end.
            try? reading.close()
            let end = coffer_wait_for_command(process)
            if case .failure = count { return try count.get() }
            guard end < 256 else {
                Signals.endIfFromTerminal(end - 256)
                throw ToolError(
                    .secretSource, "\(source.description) died by signal \(end - 256)")
            }
            guard end == 0 else {
                throw ToolError(.secretSource, "\(source.description) failed with exit code \(end)")
            }
            return try count.get()
        }
    }
}
