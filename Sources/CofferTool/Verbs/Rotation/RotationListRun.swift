import ArgumentParser
import Coffer
import Foundation

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
        // A file that cannot be written is only a warning: the stores are rotated all the same.
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
            let secret = try ListSecret(secret, for: due.count { $0.facts != nil })
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
        ["rotate", ShellWord.argument(path)] + (newRoot?.arguments ?? []) + pause.arguments
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
