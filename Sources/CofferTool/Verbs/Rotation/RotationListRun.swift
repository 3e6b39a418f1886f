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
    /// The options of each run, without the secret and the path.
    let options: [String]

    func run() async throws {
        try StandardInput.claim(stores.list == "-" ? "the list" : nil, secret)
        let beginning = ContinuousClock.now
        let paths = try stores.all()
        let failedOut = try stores.failedOut.map { try OutputFile($0) }
        let report = try record.report.map { try RotationReportFile($0) }
        let records = RotationRecords(paths, report)
        let failure = await rotate(paths, records)
        if let failure, !records.isBegun { throw failure }
        let events = records.finish()
        let seconds = RotationResult.seconds(beginning.duration(to: .now))
        let list = RotationListResult(events, seconds: seconds, isDryRun: record.dryRun)
        output.printDone(list)
        try failedOut.map { try list.writeUndone(to: $0) }
        if let path = record.prometheus {
            try RotationMetricsFile(events, seconds: seconds).write(to: path)
        }
        if let failure = failure ?? records.failure { throw list.ended(by: failure) }
        guard list.exitStatus != .success else { return }
        if output.quiet, !output.json { list.tellUndone() }
        throw ExitCode(list.exitStatus.rawValue)
    }

    /// - Returns: The error that ended the list before its end.
    private func rotate(_ paths: [String], _ records: RotationRecords) async -> (any Error)? {
        let reporter = output.reporter("rotate", unit: "stores")
        defer { reporter.finish() }
        do {
            // By a signal, the result of the list counts as interrupted.
            try await Signals.cancelling(isLateResultKept: false) {
                let due = try look(at: paths, records)
                guard !due.isEmpty, !record.dryRun else { return }
                let secret = try ListSecret(secret, for: due.count)
                let list = ListRun(jobs: stores.jobs ?? 1, failureMax: stores.stopAfterFailures)
                try await list.forEach(due.count) { index in
                    let (place, facts) = due[index]
                    defer { reporter.update(records.doneCount, of: paths.count) }
                    return try rotate(facts, at: place, records) { options in
                        let path = ReportedPath(facts.path).absolute
                        return try list.run(
                            ["rotate", path] + self.options + options + secret.options, secret)
                    }
                }
            }
            return nil
        } catch {
            return error
        }
    }

    /// Looks at each store without a secret, and records those that need no run.
    ///
    /// - Returns: The stores that are due, with their places in the list.
    private func look(
        at paths: [String], _ records: RotationRecords
    ) throws -> [(place: Int, facts: RotationFacts)] {
        var found: [(Int, RotationFacts)] = []
        for (place, path) in paths.enumerated() {
            try Task.checkCancellation()
            do {
                RunFiles.opens(path)
                let facts = try RotationFacts(path)
                let isDue = due.isDue(facts.keyring) || records.wasBegun(place)
                if isDue, !record.dryRun {
                    found.append((place, facts))
                } else {
                    var event = RotationEvent(isDue ? .wouldRotate : .current, facts)
                    if record.dryRun { event.take(estimateOf: facts) }
                    try records.end(event, at: place)
                }
            } catch let error as StoreError {
                try records.end(RotationEvent(path, Failure(error)), at: place)
            }
        }
        return found
    }

    /// Rotates one store.
    ///
    /// - Parameter run: Runs the tool for the store, with these options.
    /// - Returns: Whether nothing is left to do for the store.
    private func rotate(
        _ facts: RotationFacts, at place: Int, _ records: RotationRecords,
        _ run: ([String]) throws -> StoreRun
    ) throws -> Bool {
        let epoch = try records.begin(facts, at: place)
        let found = try run(due.arguments + ["--from-epoch=\(epoch)"])
        var event = RotationEvent(ofRun: found, facts, from: epoch)
        if event.event == .foundRotated, due.olderThan != nil || due.rootOlderThan != nil,
            let now = try? RotationFacts(facts.path), due.isDue(now.keyring)
        {
            // That was long ago.
            try records.end(event, at: place)
            let epoch = try records.begin(now, at: place)
            event = RotationEvent(
                ofRun: try run(due.arguments + ["--from-epoch=\(epoch)"]), now, from: epoch)
        }
        try records.end(event, at: place)
        return event.event.isDone
    }
}

extension RotationEvent {
    /// What a run of the tool for one store reports.
    init(ofRun run: StoreRun, _ facts: RotationFacts, from epoch: Int) {
        let decoder = JSONDecoder()
        if let result = try? decoder.decode(RotationResult.self, from: run.report) {
            self.init(.rotated, facts)
            if let now = try? Keyring(of: facts.path) { take(now) }
            take(result)
            if run.exitCode != 0 { code = "\(ExitStatus.unfinished)" }
        } else if let result = try? decoder.decode(CurrentKeyResult.self, from: run.report) {
            self.init(result.epoch == epoch ? .current : .foundRotated, facts)
            if let now = try? Keyring(of: facts.path) { take(now) }
            (self.epoch, keyID, rootID) = (result.epoch, result.keyID, result.rootID)
            oldEpoch = epoch
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

    /// Takes what a rotation would need.
    mutating func take(estimateOf facts: RotationFacts) {
        freeByteCount = facts.freeByteCount
        expectedPause = RotationResult.seconds(Store.rotationPause(byteCount: facts.file.byteCount))
    }
}

/// What is known of each store of a list, in memory and in the report file.
final class RotationRecords: Sendable {
    private struct State {
        var events: [RotationEvent?]
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

    /// Whether an earlier run began to work on the store and was killed.
    func wasBegun(_ place: Int) -> Bool { unfinished(place) != nil }

    private func unfinished(_ place: Int) -> Int? {
        report?.unfinished[Array(ReportedPath(paths[place]).absolute.utf8)]
    }

    /// Records that a run for the store begins.
    ///
    /// - Returns: The epoch that it begins with: that of an earlier run that was killed, the first
    ///   time.
    func begin(_ facts: RotationFacts, at place: Int) throws -> Int {
        let isFirst = state.withLock { state in
            state.isBegun = true
            return state.events[place] == nil
        }
        if isFirst, let epoch = unfinished(place) { return epoch }
        try append(RotationEvent(.started, facts))
        return facts.keyring.epoch
    }

    /// Records what became of the store.
    func end(_ event: RotationEvent, at place: Int) throws {
        // The list tells it even if the file does not.
        state.withLock { $0.events[place] = event }
        try append(event)
    }

    private func append(_ event: RotationEvent) throws {
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
        let all = state.withLock { state in
            zip(paths, state.events).map { ($0, $1) }
        }
        return all.map { path, event in
            if let event { return event }
            let event = RotationEvent(.notStarted, path)
            if failure == nil { try? append(event) }
            return event
        }
    }
}
