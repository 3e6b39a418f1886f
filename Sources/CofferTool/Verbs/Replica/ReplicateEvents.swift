import Coffer
import CofferReplica
import Foundation
import Synchronization

/// An event of `replicate`; the last one is its report.
struct ReplicateEvent: Report {
    enum Kind: String, Encodable {
        case waiting, ready, sent, snapshot, unchanged, failed, recovered, stopped
    }

    let event: Kind
    let path: ReportedPath
    let remote: String
    let time: Date
    /// The newest commit that the remote has.
    let position: String?
    /// The reason of a `failed` event, and of a `stopped` one if the run ended by it.
    var error: Failure?
    /// The longest time that a `waiting` event takes; the others have none.
    var seconds: Int?

    var lines: [(label: String, value: String)] {
        [
            ("store", "\(path)"), ("replica", "\(remote)"),
            ("position", position ?? "none"),
        ] + (event == .unchanged ? [("result", "nothing was committed since the last run")] : [])
    }
}

/// Tells a person or a program what a replication does.
final class ReplicateEvents: Sendable {
    private let path: String
    private let remote: String
    private let output: OutputOptions
    private let isService: Bool
    private let metrics: ReplicaMetrics?
    let lines = EventLines()
    private let state = Mutex(State())

    private struct State {
        var position: ReplicaPosition?
        /// The failure that lasts: its message, and when it was told.
        var failure: (message: String, time: ContinuousClock.Instant)?
        /// Whether commits could not be sent.
        var isDown = false
        var snapshotDate: Date?
        var isReady = false
        /// How many requests of a supervisor are not served yet.
        var requestCount = 0
    }

    /// How long a failure that lasts is not told again.
    private static let pause = Duration.seconds(3600)

    /// - Parameter isService: Whether events are told, and not only the end.
    init(
        _ path: String, _ remote: String, _ output: OutputOptions, isService: Bool,
        _ metrics: ReplicaMetrics?
    ) {
        (self.path, self.remote, self.output) = (path, remote, output)
        (self.isService, self.metrics) = (isService, metrics)
    }

    /// Whether each event is a line of JSON, which takes the place of messages.
    private var writesLines: Bool { isService && output.json }

    func isReady(_ replica: Replica) async {
        let status = await replica.status
        let position = status.position
        state.withLock { ($0.position, $0.isReady) = (position, true) }
        update(ReplicaMetricsFile.Values(status))
        guard isService else { return }
        tell(.ready, position)
        note(
            "the replica at \(remote) has everything up to "
                + "\(position.map(\.description) ?? "the beginning"); Ctrl-C ends it")
        Supervisor.notify("READY=1")
    }

    /// Called before a wait for a former run.
    func waits(_ longest: Duration) {
        let seconds = Int(longest / .seconds(1))
        tell(.waiting, nil, seconds: seconds)
        guard !writesLines else { return }
        let text =
            "\(path): the last run did not stop; waiting up to \(seconds) s until it is surely gone"
        lines.add { Terminal.note(text) }
    }

    /// Called with each failure. One that lasts is told once an hour.
    func failed(_ error: any Error) {
        let failure = Failure(error)
        let now = ContinuousClock.now
        // Afterwards the status of the replica tells.
        if !state.withLock(\.isReady) { metrics?.set(isOK: false) }
        let isNew = state.withLock { state in
            if let told = state.failure, told.message == failure.message,
                now - told.time < Self.pause
            {
                return false
            }
            state.failure = (failure.message, now)
            return true
        }
        guard isNew else { return }
        tell(.failed, state.withLock { $0.position }, failure)
        guard !writesLines else { return }
        lines.add { Terminal.warn(failure.sentence) }
    }

    /// Tells what has happened since the last call.
    ///
    /// - Returns: Why the replication has ended; `nil` while it goes on.
    func look(at replica: Replica) async throws -> StoreError? {
        let status = await replica.status
        update(ReplicaMetricsFile.Values(status))
        if let end = status.end { return end }
        let isSent = advance(to: status.position)
        let (isRecovered, isSnapshot) = state.withLock { state in
            let isSnapshot = state.snapshotDate != status.snapshotDate
            state.snapshotDate = status.snapshotDate
            if status.failure != nil { state.isDown = true }
            let isRecovered =
                status.failure == nil && state.failure != nil
                && (state.isDown || status.snapshotFailure == nil)
            if isRecovered { (state.failure, state.isDown) = (nil, false) }
            return (isRecovered, isSnapshot)
        }
        if isRecovered {
            tell(.recovered, status.position)
            note("the replica at \(remote) has everything again")
        } else if isSent {
            tell(.sent, status.position)
        }
        if isSnapshot { tell(.snapshot, status.position) }
        return nil
    }

    /// Sends what was committed, at the request of a supervisor, and says that it is in the remote.
    /// A failure is told as any other, and tried again.
    func sendNow(_ replica: Replica) async {
        let isFirst = state.withLock { state in
            state.requestCount += 1
            return state.requestCount == 1
        }
        // Otherwise the task of the first request serves this one too.
        guard isFirst else { return }
        await Supervisor.reloading {
            while true {
                let count = state.withLock(\.requestCount)
                guard let position = await caughtUp(replica) else { return false }
                let isServed = state.withLock { state in
                    if state.requestCount == count { state.requestCount = 0 }
                    return state.requestCount == 0
                }
                guard isServed else { continue }
                advance(to: position)
                tell(.sent, position)
                note("the replica at \(remote) has everything up to \(position)")
                return true
            }
        }
    }

    /// Waits until the remote has everything; `nil` if the replication ends before.
    private func caughtUp(_ replica: Replica) async -> ReplicaPosition? {
        while true {
            do {
                return try await replica.caughtUp()
            } catch {
                let isClosed = (error as? StoreError)?.code == .closed
                guard !isClosed, await replica.status.end == nil else { return nil }
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return nil }
            }
        }
    }

    /// Notes the newest commit that was told.
    ///
    /// - Returns: Whether it is newer than the one before.
    @discardableResult
    private func advance(to position: ReplicaPosition?) -> Bool {
        state.withLock { state in
            guard let position, state.position.map({ $0 < position }) ?? true else { return false }
            state.position = position
            return true
        }
    }

    /// Waits until everything before is told, some seconds at most.
    ///
    /// - Returns: The report of the run.
    func stopped(_ replica: Replica) async throws -> ReplicateEvent {
        let status = await replica.status
        let position = status.position
        var values = ReplicaMetricsFile.Values(status)
        values.isOK = true
        update(values, isLast: true)
        tell(.stopped, position)
        finish()
        return event(isService ? .stopped : .sent, position)
    }

    /// Tells that the run ends by an error.
    func ended(by error: any Error) {
        metrics?.set(isOK: false, isLast: true)
        tell(.stopped, state.withLock(\.position), Failure(error))
        finish()
    }

    /// - Returns: The report of a run that has found nothing to send.
    func unchanged(at position: ReplicaPosition) -> ReplicateEvent {
        update(ReplicaMetricsFile.Values(isOK: true, sentDate: .now), isLast: true)
        return event(.unchanged, position)
    }

    /// Called while pages are sent.
    func progresses() {
        if !state.withLock(\.isReady) { metrics?.set(isOK: true) }
    }

    private func update(_ values: ReplicaMetricsFile.Values, isLast: Bool = false) {
        metrics?.update(isLast: isLast) { $0 = values }
    }

    /// Waits until everything is told, some seconds at most: a reader may have stalled.
    func finish() { lines.finish() }

    private func event(
        _ kind: ReplicateEvent.Kind, _ position: ReplicaPosition?, _ failure: Failure? = nil,
        seconds: Int? = nil
    ) -> ReplicateEvent {
        ReplicateEvent(
            event: kind, path: ReportedPath(path), remote: remote, time: .now,
            position: position?.description, error: failure, seconds: seconds)
    }

    /// Writes a line of JSON.
    private func tell(
        _ kind: ReplicateEvent.Kind, _ position: ReplicaPosition?, _ failure: Failure? = nil,
        seconds: Int? = nil
    ) {
        guard writesLines else { return }
        let event = event(kind, position, failure, seconds: seconds)
        lines.add(kind == .sent ? "sent" : nil) { [output] in
            // If nobody reads it any more, the replica goes on.
            Terminal.warning { try output.print(event) }
        }
    }

    /// Writes a remark at once; with `--json` an event has it.
    private func note(_ message: String) {
        guard !output.json else { return }
        lines.add { [output, path] in output.note("\(path): \(message)") }
    }
}
