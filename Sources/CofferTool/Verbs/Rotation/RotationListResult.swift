import Coffer

/// What `coffer rotate` prints about several stores.
struct RotationListResult: Report {
    /// How many stores came to each end.
    let counts: [String: Int]
    let seconds: Double
    let isDryRun: Bool
    let stores: [RotationEvent]

    init(_ events: [RotationEvent], seconds: Double, isDryRun: Bool) {
        counts = Dictionary(grouping: events, by: \.event.rawValue).mapValues(\.count)
        self.seconds = seconds
        self.isDryRun = isDryRun
        stores = events
    }

    var lines: [(label: String, value: String)] {
        let shown = stores.filter { isDryRun ? $0.event != .notStarted : !$0.isWhole }
        var lines = shown.map { event in
            let label = event.event.isDone && !isDryRun ? "unfinished" : event.event.text
            return (label: label, value: "\(event.path): \(event.text)")
        }
        lines.append((label: "stores", value: "\(stores.count)"))
        for state in RotationState.allCases {
            let count = counts[state.rawValue] ?? 0
            if count > 0 { lines.append((label: state.text, value: "\(count)")) }
        }
        if let pause = stores.compactMap(\.pause).max() {
            lines.append((label: "longest pause", value: "\(pause) s"))
        }
        lines.append((label: "time", value: "\(seconds) s"))
        return lines
    }

    private var undone: [RotationEvent] { stores.filter { !$0.event.isDone } }

    /// The exit code of the whole list.
    var exitStatus: ExitStatus {
        guard undone.isEmpty else { return .partlyFailed }
        return stores.allSatisfy(\.isWhole) ? .success : .unfinished
    }

    /// Writes the paths of the stores that are not done.
    func writeUndone(to file: OutputFile) throws {
        for event in undone {
            _ = try file.descriptor.writeAll((event.path.absolute + "\n").utf8)
        }
        try file.finish()
    }

    /// Says what is not done, for somebody who does not read the report.
    func tellUndone() {
        for event in stores where !event.isWhole {
            Terminal.warn("\(event.path): \(event.text)")
        }
        guard !undone.isEmpty else { return }
        Terminal.fail(Failure(ToolError(exitStatus, summary, hint: Self.again)))
    }

    private var summary: String {
        "\(undone.count) of \(stores.count.counted("store")) were not rotated"
    }

    private static let again =
        "Run the same command again, with --older-than for those alone "
        + "that are not done."

    /// The error for a list that did not come to its end.
    func ended(by error: any Error) -> any Error {
        guard error is CancellationError else { return error }
        return ToolError(.interrupted, "interrupted: \(summary)", hint: Self.again)
    }
}

extension RotationEvent {
    /// Whether the store is done, and the rotation left nothing to do.
    var isWhole: Bool { event.isDone && (exitCode ?? 0) == 0 }
}
