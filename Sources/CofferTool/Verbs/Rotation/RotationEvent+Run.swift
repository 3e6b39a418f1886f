import Coffer
import Foundation

extension RotationEvent {
    /// Takes the result from the JSON of a run for one store.
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
        let stays = Set((slots ?? []).map(\.id))
        let gone = facts.keyring.slots.map { SlotReport($0) }.filter { !stays.contains($0.id) }
        if event == .rotated || event == .foundRotated, !gone.isEmpty { droppedSlots = gone }
        exitCode = run.exitCode
        if !run.messages.warnings.isEmpty { warnings = run.messages.warnings }
    }

    /// Adds the slots of a store that a revocation leaves alone, and a warning of each whose label
    /// only looks like the one that the command names. Does nothing for any other store.
    mutating func take(_ slots: [KeySlot], leftBy newRoot: RotationRun.NewRoot?) {
        guard let newRoot, newRoot.isRevocation, event == .current else { return }
        message = "it has " + slots.map(\.named).joined(separator: ", ")
        let close = slots.filter { slot in newRoot.dropped.contains { $0.resembles(slot) } }
        guard !close.isEmpty else { return }
        let names = close.map(\.named).joined(separator: ", ")
        warnings = (warnings ?? []) + ["the name of \(names) looks the same, and is not"]
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
