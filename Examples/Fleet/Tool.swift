import Foundation

/// The tool `coffer`, for all stores.
struct Tool {
    /// What it reports about a list, with `--json`.
    struct Result {
        let exitCode: Int32
        let counts: [String: Int]

        var isDone: Bool { exitCode == 0 }
    }

    private struct Report: Decodable {
        let counts: [String: Int]?
    }

    /// The words of each rotation. The rest is in the list, so that cron would have the same line.
    static let rotation = ["rotate", "--older-than", "90d", "--jobs", "2"]

    private let program: URL
    private let stores: Stores

    init(_ stores: Stores) throws {
        self.stores = stores
        let named = ProcessInfo.processInfo.environment["COFFER"].map { URL(filePath: $0) }
        let besides = Bundle.main.executableURL?.deletingLastPathComponent()
            .appending(path: "coffer")
        guard let program = named ?? besides else { throw CocoaError(.fileNoSuchFile) }
        self.program = program
    }

    /// Runs it to its end.
    func run(_ words: [String]) throws -> Result {
        let run = try start(words)
        let output = try run.output.fileHandleForReading.readToEnd() ?? Data()
        run.process.waitUntilExit()
        let report = try? JSONDecoder().decode(Report.self, from: output)
        return Result(exitCode: run.process.terminationStatus, counts: report?.counts ?? [:])
    }

    func start(_ words: [String]) throws -> ToolProcess {
        let record =
            words.first == "rotate" && !words.contains("--dry-run")
            ? ["--report", stores.reportFile, "--key-file", stores.keyFile] : []
        return try ToolProcess(program, words + ["--list", stores.list] + record)
    }
}

/// A run of the tool.
final class ToolProcess {
    let process = Process()
    let output = Pipe()

    init(_ program: URL, _ arguments: [String]) throws {
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
    }

    /// Ends it as `kill -9` does: it cannot clean up.
    ///
    /// - Returns: Whether the signal ended it.
    func kill() -> Bool {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal
    }
}
