import Coffer

/// Writes content of a store in plaintext, as one snapshot: to a new file, or to standard output.
struct PlaintextExport {
    let connection: Connection
    /// The new file; `nil` for standard output.
    let path: String?
    let talk: OutputOptions
    let verb: String
    /// What the progress counts.
    let unit: String
    /// What an interruption leaves of standard output.
    let interruption: String
    /// Writes the content, and returns how much of it there is.
    let write: (inout StandardOutput, ProgressReporter) throws -> Int

    /// - Returns: What `write` returned for a file; `nil` for standard output.
    func callAsFunction() async throws -> Int? {
        guard let path else {
            var standardOutput = StandardOutput()
            let reporter = talk.reporter(verb, unit: unit)
            defer { reporter.finish() }
            Signals.note(interruption)
            _ = try connection.transaction(.deferred) { try write(&standardOutput, reporter) }
            try standardOutput.flush()
            return nil
        }
        if !talk.quiet { Terminal.warn("\(path) will hold the content in plaintext") }
        // Only the task below uses `work` until that task has ended.
        nonisolated(unsafe) let work = { try write(to: path) }
        let interrupt = connection.interruptHandle
        return try await Signals.cancelling {
            // A statement that sorts or counts returns no row for a long time.
            try await withTaskCancellationHandler {
                do {
                    return try work()
                } catch {
                    guard Failure(error).status == .interrupted else { throw error }
                    throw ToolError(
                        .interrupted, "interrupted: \(path) was not made",
                        hint: "Run the same command again.")
                }
            } onCancel: {
                interrupt.stop()
            }
        }
    }

    private func write(to path: String) throws -> Int {
        let file = try OutputFile(path)
        let reporter = talk.reporter(verb, unit: unit)
        defer { reporter.finish() }
        var output = StandardOutput(file.descriptor, name: path)
        let count = try connection.transaction(.deferred) { try write(&output, reporter) }
        try output.flush()
        try file.finish()
        return count
    }
}
