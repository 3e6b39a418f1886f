import ArgumentParser
import Coffer
import Foundation
import Synchronization

/// The rotation of several stores, each in a run of its own.
struct RotationListRun: Sendable {
    let stores: StoreListOptions
    let secret: SecretOptions
    let output: OutputOptions
    let due: DueOptions
    let record: RecordOptions
    let pause: PauseOption
    let newRoot: RotationRun.NewRoot?

    func run() async throws {
        try StandardInput.claim(stores.list == "-" ? "the list" : nil, secret)
        let beginning = ContinuousClock.now
        let paths = try stores.all()
        try record.requireApart(from: stores, paths)
        try newRoot?.kept.requireReadableAgain()
        let failedOut = try stores.failedOut.map { try OutputFile($0) }
        let metrics = try record.prometheus.map { try RotationMetricsFile($0) }
        let report = try record.report.map { try RotationReportFile($0) }
        let records = RotationRecords(paths, report)
        let failure = await rotate(paths, records)
        let list = RotationListResult(
            records.finish(), seconds: RotationResult.seconds(beginning.duration(to: .now)),
            isDryRun: record.dryRun, failedOut: stores.failedOut)
        if records.isBegun || failure == nil { output.printDone(list) }
        // What was done is done, whatever can be written about it.
        if let failedOut { Terminal.warning { try failedOut.finish(paths: list.leftPaths) } }
        if let metrics { Terminal.warning { try metrics.write(list) } }
        if newRoot != nil, list.stores.contains(where: { $0.event == .rotated }) {
            output.note(RotationRun.afterNewRoot)
        }
        if let failure = failure ?? records.failure {
            throw records.isBegun ? list.ended(by: failure) : failure
        }
        guard list.exitStatus != .success else { return }
        if output.quiet, !output.json { list.tellUndone() }
        throw ExitCode(list.exitStatus.rawValue)
    }

    /// - Returns: The error that ended the list before its end.
    private func rotate(_ paths: [String], _ records: RotationRecords) async -> (any Error)? {
        let reporter = output.reporter("rotate", unit: "stores")
        defer { reporter.finish() }
        do {
            let due = try look(at: paths, records)
            guard due.contains(where: { $0.facts != nil }), !record.dryRun else { return nil }
            // Not while a signal cancels the work: nothing has begun, and the run ends at once.
            let secret = try ListSecret(
                secret, for: due.count { $0.facts != nil }, apart: stores.list == "-")
            let list = ListRun(jobs: stores.jobs ?? 1, failureMax: stores.stopAfterFailures)
            // By a signal, the result of the list counts as interrupted.
            try await Signals.cancelling(isLateResultKept: false) {
                try await list.forEach(due.count) { index in
                    guard let facts = due[index].facts else { return false }
                    defer { reporter.update(records.doneCount, of: paths.count) }
                    return try rotate(facts, at: due[index].place, records) { options in
                        try list.run(verb(for: facts.path) + options + secret.options, secret)
                    }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    private func verb(for path: String) -> [String] {
        ["rotate", StoreRun.argument(path)] + (newRoot?.arguments ?? []) + pause.arguments
            + stores.busy.arguments
    }

    /// Looks at each store without a secret, and records those that need no run.
    ///
    /// - Returns: The places in the list of stores that are due, and of those that cannot be looked
    ///   at, which have no facts.
    private func look(
        at paths: [String], _ records: RotationRecords
    ) throws -> [(place: Int, facts: RotationFacts?)] {
        var found: [(Int, RotationFacts?)] = []
        for (place, path) in paths.enumerated() {
            do {
                RunFiles.opens(path)
                let facts = try RotationFacts(path)
                let work = due.work(for: facts.keyring, newRoot: newRoot?.dropped)
                if record.dryRun {
                    try records.end(plan(facts, work), at: place)
                } else if work == nil, records.begun(facts) == nil, !facts.mayOweCheckpoint {
                    var event = RotationEvent(.current, facts)
                    event.warnings = records.warning(facts).map { [$0] }
                    try records.end(event, at: place)
                } else {
                    records.found(facts, at: place)
                    found.append((place, facts))
                }
            } catch let error as StoreError {
                try records.end(RotationEvent(path, Failure(error)), at: place)
                found.append((place, nil))
            }
        }
        return found
    }

    /// What `--dry-run` says about a store.
    private func plan(_ facts: RotationFacts, _ work: DueOptions.Work?) -> RotationEvent {
        let plan = RotationPlan(
            facts, work, pause: pause, newRoot: newRoot, secret: try? secret.named()?.form.kind)
        var event = RotationEvent(work == nil ? .current : .wouldRotate, facts)
        if let obstacle = plan.obstacle { event = RotationEvent(facts, Failure(obstacle)) }
        event.freeByteCount = plan.freeByteCount
        event.expectedPause = RotationResult.seconds(plan.expectedPause)
        event.warnings = plan.warnings.isEmpty ? nil : plan.warnings
        event.message = event.message ?? plan.text
        return event
    }

    /// Rotates one store.
    ///
    /// - Parameter run: Runs the tool for the store, with these options.
    /// - Returns: Whether nothing is left to do for the store.
    private func rotate(
        _ facts: RotationFacts, at place: Int, _ records: RotationRecords,
        _ run: ([String]) throws -> StoreRun
    ) throws -> Bool {
        let begun = records.begun(facts)
        try records.begin(facts)
        var event: RotationEvent
        do {
            event = RotationEvent(
                ofRun: try run(due.arguments(from: facts.keyring, isNewRoot: newRoot != nil)), facts
            )
        } catch let error as ToolError {
            event = RotationEvent(facts, Failure(error))
        }
        if let begun, let earlier = event.splitOff(begun) {
            try records.append(earlier)
        }
        try records.end(event, at: place)
        return event.event.isDone
    }
}

extension RotationEvent {
    /// What a run of the tool for one store reports.
    init(ofRun run: StoreRun, _ facts: RotationFacts) {
        let decoder = JSONDecoder()
        if let result = try? decoder.decode(RotationResult.self, from: run.report) {
            self.init(.rotated, facts)
            if let now = try? Keyring(of: facts.path) { take(now) }
            take(result)
            if run.exitCode != 0 { code = "\(ExitStatus.unfinished)" }
        } else if let result = try? decoder.decode(CurrentKeyResult.self, from: run.report) {
            let before = facts.keyring
            guard result.storeID == before.storeID else {
                let error = ToolError(
                    .busy, "another store was put in its place meanwhile",
                    hint: "Run the same command again.")
                self.init(facts, Failure(error))
                return
            }
            self.init(result.epoch > before.epoch ? .foundRotated : .current, facts)
            if let now = try? Keyring(of: facts.path) { take(now) }
            take(result)
            if event == .foundRotated {
                (oldEpoch, oldKeyID) = (before.epoch, before.keyID.description)
                oldRootID = before.rootID
            }
            if run.exitCode != 0 { code = "\(ExitStatus.unfinished)" }
        } else {
            let isInterrupted = [130, 256 + SIGTERM, 256 + SIGINT].contains(run.exitCode)
            self.init(isInterrupted ? .interrupted : .failed, facts)
            if let now = try? Keyring(of: facts.path) { take(now) }
            code = run.messages.error?.code
            message = run.messages.error?.message ?? run.endText
            hint = run.messages.error?.hint
        }
        exitCode = run.exitCode
        if !run.messages.warnings.isEmpty { warnings = run.messages.warnings }
    }

    /// Claims what an earlier run has done and not said: a later epoch than the one it began with.
    /// Only the result of a run that opened the store can show it.
    ///
    /// - Returns: A line of its own for the earlier run, if this one has rotated the key as well.
    mutating func splitOff(_ begun: RotationReportFile.Begun) -> RotationEvent? {
        switch event {
        case .current, .foundRotated:
            guard let epoch, epoch > begun.epoch else { return nil }
            event = .foundRotated
            (oldEpoch, oldKeyID, oldRootID) = (begun.epoch, begun.keyID, begun.rootID)
            return nil
        case .rotated:
            guard let middle = oldEpoch, middle > begun.epoch else { return nil }
            var earlier = RotationEvent(.foundRotated, path.description)
            earlier.storeID = storeID
            (earlier.oldEpoch, earlier.epoch) = (begun.epoch, middle)
            (earlier.oldKeyID, earlier.keyID) = (begun.keyID, oldKeyID)
            (earlier.oldRootID, earlier.rootID) = (begun.rootID, oldRootID)
            return earlier
        case .started, .wouldRotate, .failed, .interrupted, .notStarted: return nil
        }
    }
}

/// What is known of each store of a list, in memory and in the report file.
final class RotationRecords: Sendable {
    private struct State {
        var events: [RotationEvent?]
        /// What was visible of the stores that are due.
        var facts: [Int: RotationFacts] = [:]
        var isBegun = false
        var failure: (any Error)?
    }

    private let paths: [String]
    private let report: RotationReportFile?
    private let state: Mutex<State>

    init(_ paths: [String], _ report: RotationReportFile?) {
        self.paths = paths
        self.report = report
        state = Mutex(State(events: Array(repeating: nil, count: paths.count)))
    }

    /// Whether a run for a store has begun.
    var isBegun: Bool { state.withLock { $0.isBegun } }

    /// The first error of the report file.
    var failure: (any Error)? { state.withLock { $0.failure } }

    var doneCount: Int { state.withLock { $0.events.count { $0 != nil } } }

    /// What an earlier run for the store has left; `nil` if nothing.
    func begun(_ facts: RotationFacts) -> RotationReportFile.Begun? {
        report?.begun(facts.path, storeID: facts.keyring.storeID)
    }

    /// Says that the store has a lower epoch than the report knows of.
    func warning(_ facts: RotationFacts) -> String? {
        let epoch = facts.keyring.epoch
        guard let known = report?.knownEpoch(facts.path, storeID: facts.keyring.storeID),
            known > epoch
        else { return nil }
        return "the keyring has epoch \(epoch) after \(known) in the report: if a backup was "
            + "restored, rotate it without --older-than, and revoke again what was revoked"
    }

    /// Takes what is visible of a store that is due.
    func found(_ facts: RotationFacts, at place: Int) {
        state.withLock { $0.facts[place] = facts }
    }

    /// Records that a run for the store begins.
    func begin(_ facts: RotationFacts) throws {
        state.withLock { $0.isBegun = true }
        try append(RotationEvent(.started, facts))
    }

    /// Records what became of the store.
    func end(_ event: RotationEvent, at place: Int) throws {
        // The list tells it even if the file does not.
        state.withLock { $0.events[place] = event }
        try append(event)
    }

    /// Records a line of the report file alone.
    func append(_ event: RotationEvent) throws {
        do {
            try report?.append(event)
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
            throw error
        }
    }

    /// Records the stores that were not begun.
    ///
    /// - Returns: The events of all stores.
    func finish() -> [RotationEvent] {
        let (events, facts) = state.withLock { ($0.events, $0.facts) }
        return paths.indices.map { place in
            if let event = events[place] { return event }
            let event =
                facts[place].map { RotationEvent(.notStarted, $0) }
                ?? RotationEvent(.notStarted, paths[place])
            if failure == nil { try? append(event) }
            return event
        }
    }
}
