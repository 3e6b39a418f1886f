import Coffer
import CofferReplica
import Foundation
import Synchronization

/// An event of `replicate`; the last one is its report.
struct ReplicateEvent: Report {
    enum Kind: String, Encodable {
        case waiting, ready, sent, failed, recovered, stopped
    }

    let event: Kind
    let path: ReportedPath
    let remote: String
    let time: Date
    /// The newest commit that the remote has.
    let position: String?
    /// The reason of a `failed` event; the others have none.
    var error: Failure?

    var lines: [(label: String, value: String)] {
        [
            ("store", "\(path)"), ("replica", "\(remote)"),
            ("position", position ?? "none"),
        ]
    }
}

/// Tells a person or a program what a replication does.
final class ReplicateEvents: Sendable {
    private let path: String
    private let remote: String
    private let output: OutputOptions
    private let isService: Bool
    private let state = Mutex(State())

    private struct State {
        var position: ReplicaPosition?
        /// The message of the failure that lasts.
        var failure: String?
    }

    /// - Parameter isService: Whether events are told, and not only the end.
    init(_ path: String, _ remote: String, _ output: OutputOptions, isService: Bool) {
        (self.path, self.remote, self.output) = (path, remote, output)
        self.isService = isService
    }

    /// Whether each event is a line of JSON, which takes the place of messages.
    private var writesLines: Bool { isService && output.json }

    func isReady(_ replica: Replica) async {
        let position = await replica.status.position
        state.withLock { $0.position = position }
        guard isService else { return }
        tell(.ready, position)
        output.noteUnlessJSON(
            "\(path): the replica at \(remote) has everything up to "
                + "\(position.map(\.description) ?? "the beginning"); Ctrl-C ends it")
        Supervisor.notify("READY=1")
    }

    /// Called before a wait for a former run.
    func waits(_ longest: Duration) {
        tell(.waiting, nil)
        guard !writesLines else { return }
        Terminal.note(
            "\(path): the last run did not stop; waiting up to \(Int(longest / .seconds(1))) s "
                + "until it is surely gone")
    }

    /// Called with each failure. One that lasts is told once.
    func failed(_ error: any Error) {
        let failure = Failure(error)
        let isNew = state.withLock { state in
            defer { state.failure = failure.message }
            return state.failure != failure.message
        }
        guard isNew else { return }
        tell(.failed, state.withLock { $0.position }, failure)
        guard !writesLines else { return }
        Terminal.warn(failure.message + (failure.hint.map { ": \($0)" } ?? ""))
    }

    /// Tells what has happened since the last call.
    ///
    /// - Returns: Why the replication has ended; `nil` while it goes on.
    func look(at replica: Replica) async throws -> StoreError? {
        let status = await replica.status
        if let end = status.end { return end }
        let (isSent, isRecovered) = state.withLock { state in
            let isSent = state.position != status.position
            state.position = status.position
            let isRecovered = status.failure == nil && state.failure != nil
            if isRecovered { state.failure = nil }
            return (isSent, isRecovered)
        }
        if isRecovered {
            tell(.recovered, status.position)
            output.noteUnlessJSON("\(path): the replica at \(remote) has everything again")
        } else if isSent {
            tell(.sent, status.position)
        }
        return nil
    }

    /// - Returns: The report of the run.
    func stopped(_ replica: Replica) async throws -> ReplicateEvent {
        let position = await replica.status.position
        tell(.stopped, position)
        return event(isService ? .stopped : .sent, position)
    }

    private func event(
        _ kind: ReplicateEvent.Kind, _ position: ReplicaPosition?, _ failure: Failure? = nil
    ) -> ReplicateEvent {
        ReplicateEvent(
            event: kind, path: ReportedPath(path), remote: remote, time: .now,
            position: position?.description, error: failure)
    }

    /// Writes a line of JSON.
    private func tell(
        _ kind: ReplicateEvent.Kind, _ position: ReplicaPosition?, _ failure: Failure? = nil
    ) {
        guard writesLines else { return }
        // Nobody reads it any more: the replica goes on.
        Terminal.warning { try output.print(event(kind, position, failure)) }
    }
}

extension OutputOptions {
    /// Writes a remark at once; with `--json` an event has it.
    fileprivate func noteUnlessJSON(_ message: String) {
        if !json { note(message) }
    }
}
