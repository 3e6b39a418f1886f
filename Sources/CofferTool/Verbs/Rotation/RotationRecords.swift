import Coffer
import Synchronization

/// The results of the stores of a list, in memory and in the report file.
final class RotationRecords: Sendable {
    private struct State {
        var events: [RotationEvent?]
        /// The facts about each store that is due, by its place in the list.
        var facts: [Int: RotationFacts] = [:]
        var isBegun = false
        var failure: (any Error)?
        /// Set if no store has a slot that is to be dropped.
        var slotFailure: ToolError?
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

    /// The error to end with if nothing else failed: no store has a slot that is to be dropped.
    var slotFailure: ToolError? { state.withLock { $0.slotFailure } }

    func note(_ slotFailure: ToolError) { state.withLock { $0.slotFailure = slotFailure } }

    var doneCount: Int { state.withLock { $0.events.count { $0 != nil } } }

    /// The run for the store that the report says has begun and not ended; `nil` if there is none.
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

    /// Keeps the facts about a store that is due.
    func found(_ facts: RotationFacts, at place: Int) {
        state.withLock { $0.facts[place] = facts }
    }

    /// Records that a run for the store begins. After a power loss the report says so.
    func begin(_ facts: RotationFacts) throws {
        state.withLock { $0.isBegun = true }
        try append(RotationEvent(.started, facts))
        try keeping { try report?.sync() }
    }

    /// Records what became of the store.
    ///
    /// A power loss may take the line, until another store begins or the list ends. The next run
    /// then finds what this one did, as after a kill.
    func end(_ event: RotationEvent, at place: Int) throws {
        // The list tells it even if the file does not.
        state.withLock { $0.events[place] = event }
        try append(event)
    }

    /// Records a line of the report file alone.
    func append(_ event: RotationEvent) throws {
        try keeping { try report?.append(event) }
    }

    /// Keeps the error of the report file.
    private func keeping(_ work: () throws -> Void) throws {
        do {
            try work()
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
            throw error
        }
    }

    /// Records the stores that were not begun, and makes all lines durable.
    ///
    /// - Returns: The events of all stores.
    func finish() -> [RotationEvent] {
        defer { if failure == nil { try? keeping { try report?.sync() } } }
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
