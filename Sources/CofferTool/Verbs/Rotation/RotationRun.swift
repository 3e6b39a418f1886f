import ArgumentParser
import Coffer

/// One rotation of one store, as `coffer rotate` and `coffer revoke` make it.
struct RotationRun {
    /// A new root key, and the slots that it is for.
    struct NewRoot {
        let dropped: [KeySlot.ID]
        let kept: KeptSlotOptions
    }

    let store: StoreOptions
    let secret: SecretOptions
    let output: OutputOptions
    let pause: PauseOption
    /// `nil` for a new key under the same root.
    let newRoot: NewRoot?

    func run() async throws {
        let report = try await store.withKeyring(secret) { opened in
            try await rotate(opened)
        }
        output.printDone(RotationResult(store.path, report))
        if let failure = report.recordFailure {
            Terminal.warn(
                "the keyring does not have the new epoch yet: \(failure.message); coffer "
                    + "checkpoint records it")
        }
        if let failure = report.verificationFailure {
            Terminal.warn(
                "the key was rotated, and its pages were not checked again: \(failure.message); "
                    + "coffer verify does it")
        }
        if !report.isWholeFile {
            let reason = report.checkpointFailure.map(\.message) ?? "another program is reading"
            Terminal.warn(
                "the main file without its WAL still has the old key: \(reason); run coffer "
                    + "checkpoint when the cause is gone")
        }
        output.note(
            report.isNewRoot
                ? "copies of the file and its keyring from before open as before, and root backups "
                    + "of before do not open this one: make new ones"
                : "a rotation takes access from nobody who had the root key, a root backup or a "
                    + "credential: coffer revoke does, or coffer rotate --root")
        if !report.isFinished { throw ExitCode(ExitStatus.unfinished.rawValue) }
    }

    private func rotate(_ opened: Store) async throws -> RotationReport {
        let reporters = RotationProgress.Phase.allCases.map { phase in
            (phase, output.reporter(Self.name(of: phase), unit: "bytes"))
        }
        return try await Signals.cancelling {
            defer { for (_, reporter) in reporters { reporter.finish() } }
            @Sendable func show(_ progress: RotationProgress) {
                for (phase, reporter) in reporters where phase == progress.phase {
                    guard progress.byteCountTotal > 0 else { continue }
                    reporter.update(progress.byteCount, of: progress.byteCountTotal)
                }
            }
            guard let newRoot else {
                return try await opened.rotate(maximumPause: pause.duration, progress: show)
            }
            let own = try opened.keys.ownSlotID
            return try await opened.replaceRootKey(
                dropping: newRoot.dropped, maximumPause: pause.duration,
                keeping: { [newRoot, path = store.path] plan in
                    try newRoot.kept.keep(
                        in: &plan, dropping: newRoot.dropped, own: own, for: path)
                }, progress: show)
        }
    }

    private static func name(of phase: RotationProgress.Phase) -> String {
        switch phase {
        case .verifying: "rotate: check"
        case .rotating: "rotate"
        case .movingWAL: "rotate: move the WAL"
        case .verifyingAgain: "rotate: check again"
        }
    }
}
