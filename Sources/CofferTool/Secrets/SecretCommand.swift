import Foundation
import SystemPackage

/// Runs a shell command whose output is the secret.
///
/// The command inherits the environment, standard input and standard error, so that it can prompt
/// on its own. If the verb reads its data from standard input, the command gets none of it.
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
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command]
        let output = Pipe()
        process.standardOutput = output
        // It would take the first rows of an import.
        if StandardInput.isClaimed { process.standardInput = FileHandle.nullDevice }
        do {
            try process.run()
        } catch {
            throw ToolError(.secretSource, "\(source.description) cannot be run: \(error)")
        }
        let descriptor = FileDescriptor(rawValue: output.fileHandleForReading.fileDescriptor)
        let count = Result {
            try SecretReader.readAll(descriptor, source, into: bytes)
        }
        // Closing the pipe stops a command that keeps writing, perhaps without end.
        try? output.fileHandleForReading.close()
        process.waitUntilExit()
        if case .failure = count { return try count.get() }
        let status = process.terminationStatus
        guard process.terminationReason == .exit else {
            throw ToolError(.secretSource, "\(source.description) died by signal \(status)")
        }
        guard status == 0 else {
            throw ToolError(
                .secretSource, "\(source.description) failed with exit code \(status)")
        }
        return try count.get()
    }
}
