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
            isDryRun: record.dryRun, isRevocation: newRoot?.isRevocation == true,
            failedOut: stores.failedOut)
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
        guard list.exitStatus != .success else {
            if let failure = records.slotFailure { throw failure }
            return
        }
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
                    return try rotate(facts, at: due[index].place, records) {
                        try list.run(arguments(for: facts) + secret.options, secret)
                    }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    /// The arguments of the run for a store, without the secret.
    private func arguments(for facts: RotationFacts) -> [String] {
        let keyring = facts.keyring
        let common =
            ["rotate", ShellWord.argument(facts.path)] + pause.arguments + stores.busy.arguments
        guard let newRoot = newRoot?.without(strangersTo: keyring) else {
            return common + due.arguments(from: keyring, isNewRoot: false)
        }
        guard !newRoot.isRevocation || due.work(for: keyring, newRoot: newRoot) != nil else {
            // There is nothing to revoke: the run opens the store, and replaces no key.
            return common + ["--from-epoch=0"]
        }
        return common + newRoot.arguments + due.arguments(from: keyring, isNewRoot: true)
    }

    /// Looks at each store without a secret, and records those that need no run.
    ///
    /// - Returns: The places in the list of stores that are due, and of those that cannot be looked
    ///   at, which have no facts.
    /// - Throws: `ToolError` `.notFound` if no store has a slot to drop: see `requireKnown`.
    private func look(
        at paths: [String], _ records: RotationRecords
    ) throws -> [(place: Int, facts: RotationFacts?)] {
        var found: [(Int, RotationFacts?)] = []
        var ended: [(RotationEvent, Int)] = []
        let isRevocation = newRoot?.isRevocation == true
        var isFinishing = false
        var unknown = newRoot?.dropped.filter { isRevocation || $0.isShared } ?? []
        for (place, path) in paths.enumerated() {
            do {
                RunFiles.opens(path)
                let facts = try RotationFacts(path)
                let work = due.work(for: facts.keyring, newRoot: newRoot)
                let isBegun = records.begun(facts) != nil
                if isBegun || facts.keyring.isReplacingRoot { isFinishing = true }
                unknown.removeAll { facts.keyring.slots.contains(where: $0.matches) }
                if record.dryRun {
                    ended.append((plan(facts, work), place))
                } else if work == nil, !isRevocation, !isBegun, !facts.mayOweCheckpoint {
                    var event = RotationEvent(.current, facts)
                    event.warnings = records.warning(facts).map { [$0] }
                    ended.append((event, place))
                } else {
                    records.found(facts, at: place)
                    found.append((place, facts))
                }
            } catch let error as StoreError {
                ended.append((RotationEvent(path, Failure(error)), place))
                found.append((place, nil))
                isFinishing = true
            }
        }
        try requireKnown(unknown, isFinishing: isFinishing, records)
        for (event, place) in ended { try records.end(event, at: place) }
        return found
    }

    /// Tells of slots to drop that no store has: somebody may have mistyped them.
    ///
    /// - Parameter isFinishing: Whether a store is left from an earlier run, or could not be looked
    ///   at. A revocation then goes on, and does not count as a success.
    /// - Throws: `ToolError` `.notFound` if there is nothing to drop at all.
    private func requireKnown(
        _ unknown: [SlotName], isFinishing: Bool, _ records: RotationRecords
    ) throws {
        guard let newRoot, !unknown.isEmpty else { return }
        let message = "no store that could be looked at has a slot \(unknown.listed)"
        guard unknown.count == newRoot.dropped.count else { return Terminal.warn(message) }
        let failure = ToolError(
            .notFound, message,
            hint: "It was dropped before, or has another name: coffer key list shows the slots.")
        guard isFinishing, newRoot.isRevocation else { throw failure }
        records.note(failure)
    }

    /// What `--dry-run` says about a store.
    private func plan(_ facts: RotationFacts, _ work: DueOptions.Work?) -> RotationEvent {
        let plan = RotationPlan(
            facts, work, pause: pause, newRoot: newRoot?.without(strangersTo: facts.keyring),
            secret: try? secret.named()?.form.kind)
        var event = RotationEvent(work == nil ? .current : .wouldRotate, facts)
        event.take(facts.keyring.slots, leftBy: newRoot)
        if let obstacle = plan.obstacle { event = RotationEvent(facts, Failure(obstacle)) }
        event.freeByteCount = plan.freeByteCount
        event.expectedPause = RotationResult.seconds(plan.expectedPause)
        event.warnings = (event.warnings ?? []) + plan.warnings
        if event.warnings == [] { event.warnings = nil }
        event.message = event.message ?? plan.text
        return event
    }

    /// Rotates one store.
    ///
    /// - Parameter run: Runs the tool for the store.
    /// - Returns: Whether nothing is left to do for the store.
    private func rotate(
        _ facts: RotationFacts, at place: Int, _ records: RotationRecords,
        _ run: () throws -> StoreRun
    ) throws -> Bool {
        let begun = records.begun(facts)
        try records.begin(facts)
        var event: RotationEvent
        do {
            event = RotationEvent(ofRun: try run(), facts)
            event.take(facts.keyring.slots, leftBy: newRoot)
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
