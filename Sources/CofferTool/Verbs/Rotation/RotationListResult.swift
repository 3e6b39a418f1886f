import Coffer

/// What `coffer rotate` prints about several stores.
struct RotationListResult: Report {
    /// How many stores came to each end.
    let counts: [String: Int]
    let seconds: Double
    let isDryRun: Bool
    let stores: [RotationEvent]
    /// The file of `--failed-out`. It is not in the JSON.
    private let failedOut: String?
    private let isRevocation: Bool

    private enum CodingKeys: CodingKey { case counts, seconds, isDryRun, stores }

    init(
        _ events: [RotationEvent], seconds: Double, isDryRun: Bool, isRevocation: Bool,
        failedOut: String?
    ) {
        self.failedOut = failedOut
        self.isRevocation = isRevocation
        counts = Dictionary(grouping: events, by: \.event.rawValue).mapValues(\.count)
        self.seconds = seconds
        self.isDryRun = isDryRun
        stores = events
    }

    var lines: [(label: String, value: String)] {
        let shown = stores.filter {
            isDryRun || isRevocation || !$0.isWhole || $0.event == .foundRotated
                || $0.warnings != nil
        }
        var lines = shown.flatMap { event in
            let label = !event.isWhole && event.event.isDone ? "unfinished" : text(of: event.event)
            let line = (label: label, value: event.line)
            return [line] + (event.hint.map { [(label: "hint", value: $0)] } ?? [])
        }
        lines.append((label: "stores", value: "\(stores.count)"))
        for state in RotationState.allCases {
            let count = counts[state.rawValue] ?? 0
            if count > 0 { lines.append((label: text(of: state), value: "\(count)")) }
        }
        let unfinishedCount = stores.count { !$0.isWhole && $0.event.isDone }
        if unfinishedCount > 0 {
            lines.append((label: "of these unfinished", value: "\(unfinishedCount)"))
        }
        if let pause = stores.compactMap(\.pause).max() {
            lines.append((label: "longest pause", value: "\(pause) s"))
        }
        lines.append((label: "time", value: "\(seconds) s"))
        return lines
    }

    /// The end of a store, for people.
    private func text(of state: RotationState) -> String {
        switch state {
        case .rotated where isRevocation: "revoked"
        case .wouldRotate where isRevocation: "would revoke"
        case .current where isRevocation: "without the slot"
        default: state.text
        }
    }

    private var undone: [RotationEvent] { stores.filter { !$0.event.isDone } }

    /// The exit code of the whole list.
    var exitStatus: ExitStatus {
        guard undone.isEmpty else { return .partlyFailed }
        return stores.allSatisfy(\.isWhole) ? .success : .unfinished
    }

    /// The paths of the stores that have something left to do.
    var leftPaths: [ReportedPath] { stores.filter { !$0.isWhole }.map(\.path) }

    /// Says what is not done, for somebody who does not read the report.
    func tellUndone() {
        for event in stores where !event.isWhole || event.warnings != nil {
            Terminal.warn(event.line + (event.hint.map { "; \($0)" } ?? ""))
        }
        guard !undone.isEmpty else { return }
        Terminal.fail(Failure(ToolError(exitStatus, summary, hint: again)))
    }

    private var summary: String {
        "\(undone.count) of \(stores.count.counted("store")) were not \(text(of: .rotated))"
    }

    /// How to go on with the stores that are not done.
    private var again: String {
        if let failedOut {
            return
                "Run it again with --list \(ShellWord.of(failedOut)) for those that are not done."
        }
        guard !isRevocation else { return "Run the same command again." }
        return "Run the same command again with --older-than \(Int(seconds / 60) + 1)m: it leaves "
            + "out the stores that this run has rotated."
    }

    /// The error for a list that did not come to its end.
    func ended(by error: any Error) -> any Error {
        guard error is CancellationError else {
            let failure = Failure(error)
            return ToolError(failure.status, "\(failure.message); \(summary)", hint: again)
        }
        return ToolError(.interrupted, "interrupted: \(summary)", hint: again)
    }
}

extension RotationEvent {
    /// Whether the store is done, and the rotation left nothing to do.
    var isWhole: Bool { event.isDone && (exitCode ?? 0) == 0 }
}
