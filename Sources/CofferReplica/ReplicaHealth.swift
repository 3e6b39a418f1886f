import Coffer
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Whether a replica is up to date, and what keeps it from that. Tells the program, the log and the
/// metrics.
final class ReplicaHealth: Sendable {
    private let state = Mutex(State())
    private let options: ReplicaOptions
    let reports: ReplicaReports

    private struct State {
        var failure: ReplicaFailure?
        var sentDate: Date?
        var snapshotDate: Date?
        var snapshotFailure: ReplicaFailure?
        /// The last failure that was logged: what it was, and when.
        var logged: (text: String, time: ContinuousClock.Instant)?
    }

    /// How long a failure that lasts is not logged again.
    private static let loggingPause = Duration.seconds(3600)

    init(_ options: ReplicaOptions, _ reports: ReplicaReports) {
        (self.options, self.reports) = (options, reports)
    }

    /// The last failure since the remote had everything; `nil` if there is none.
    var failure: ReplicaFailure? { state.withLock(\.failure) }

    /// When the remote last had everything that was committed; `nil` if it never had.
    var sentDate: Date? { state.withLock(\.sentDate) }

    /// When this process last made a snapshot; `nil` if it has made none.
    var snapshotDate: Date? { state.withLock(\.snapshotDate) }

    /// Why the last snapshot, or the deletion after it, failed; `nil` if neither did.
    var snapshotFailure: ReplicaFailure? { state.withLock(\.snapshotFailure) }

    /// A snapshot failed, or the deletion after it. Commits are sent all the same.
    func maintenanceFailed(_ error: any Error) {
        let failure = ReplicaFailure(date: options.currentDate(), error: error)
        state.withLock { $0.snapshotFailure = failure }
        reports.snapshotFailed(error)
        guard let known = error as? StoreError else { return options.failed(error) }
        options.failed(
            StoreError(
                known.code,
                "commits are sent, but a snapshot or the deletion after it failed: "
                    + known.message,
                hint: known.hint, cause: known))
    }

    func madeSnapshot() {
        let date = options.currentDate()
        state.withLock { $0.snapshotDate = date }
    }

    /// The last snapshot, and the deletion after it, have succeeded.
    func maintained() { state.withLock { $0.snapshotFailure = nil } }

    func failed(_ error: any Error) {
        let date = options.currentDate()
        let text = (error as? StoreError).map { "\($0.code)" } ?? "\(type(of: error))"
        let now = ContinuousClock.now
        let (sentDate, isNew) = state.withLock { state in
            state.failure = ReplicaFailure(date: date, error: error)
            let isNew =
                state.logged.map { $0.text != text || now - $0.time > Self.loggingPause } ?? true
            if isNew { state.logged = (text, now) }
            return (state.sentDate, isNew)
        }
        reports.failed(
            error, seconds: sentDate.map { date.timeIntervalSince($0) }, isNew: isNew)
        options.failed(error)
    }

    /// The remote has everything that was committed before a pass.
    func passed(in duration: Duration) {
        let date = options.currentDate()
        let isRecovered = state.withLock { state in
            defer { (state.failure, state.logged, state.sentDate) = (nil, nil, date) }
            return state.logged != nil
        }
        reports.passed(in: duration)
        if isRecovered { reports.recovered() }
    }
}
