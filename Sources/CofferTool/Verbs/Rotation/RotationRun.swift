import ArgumentParser
import Coffer

/// One rotation of one store, as `coffer rotate` and `coffer revoke` make it.
struct RotationRun {
    /// A new root key, and the slots that it is for.
    struct NewRoot {
        let dropped: [SlotName]
        let kept: KeptSlotOptions
        /// Whether the root is replaced only where there is a slot to drop.
        var isRevocation = false

        /// The options for a run of the tool.
        var arguments: [String] {
            ["--root"] + dropped.map { "--drop=\($0)" } + kept.arguments
        }

        func drops(_ slot: KeySlot) -> Bool { dropped.contains { $0.matches(slot) } }

        /// Whether the keyring has a slot to drop, or cannot ever have had it: dropping it is then
        /// a mistake that has to be told.
        func drops(anyOf keyring: Keyring) -> Bool {
            keyring.slots.contains(where: drops) || dropped.contains { $0.isBeyond(keyring) }
        }

        /// The labels and fingerprints that no slot of the keyring has.
        func strangers(to keyring: Keyring) -> [SlotName] {
            guard !keyring.isReplacingRoot else { return [] }
            return dropped.filter { $0.isShared && !keyring.slots.contains(where: $0.matches) }
        }

        /// The same, without the labels and fingerprints that no slot of the keyring has.
        func without(strangersTo keyring: Keyring) -> Self {
            let strangers = strangers(to: keyring)
            return Self(
                dropped: dropped.filter { !strangers.contains($0) }, kept: kept,
                isRevocation: isRevocation)
        }

        /// The numbers of the slots to drop. What an earlier run has begun to replace has dropped
        /// its slots already.
        ///
        /// - Throws: `ToolError` `.notFound`.
        func numbers(in keyring: Keyring, of path: String) throws -> [KeySlot.ID] {
            try dropped.numbers(
                in: keyring.slots, of: path,
                isComplete: !keyring.isReplacingRoot
                    || dropped.contains { $0.isBeyond(keyring) })
        }
    }

    let store: StoreOptions
    let secret: SecretOptions
    let output: OutputOptions
    let pause: PauseOption
    /// `nil` for a new key under the same root.
    let newRoot: NewRoot?
    let due: DueOptions

    static let afterNewRoot =
        "copies of the file and its keyring from before open as before, and root backups of before "
        + "do not open this one: make new ones; a replica of the store ends: replicate to a new "
        + "remote, and delete the former one with all versions, as it opens as before"

    func run() async throws {
        try store.requireKeyring(secret)
        let facts = try RotationFacts(store.path)
        guard due.isRepeated || work(for: facts.keyring) != nil || facts.mayOweCheckpoint else {
            for name in newRoot?.strangers(to: facts.keyring) ?? [] {
                Terminal.warn("there is no slot \(name)")
            }
            return try output.print(CurrentKeyResult(store.path, facts.keyring))
        }
        let (report, current) = try await store.withKeyring(secret) { opened in
            let report = try await rotate(opened)
            let current =
                report == nil ? try await CurrentKeyResult(store.path, finishing: opened) : nil
            return (report, current)
        }
        if let current {
            try output.print(current)
            try current.requireFinished()
        }
        if let report { try tell(report) }
    }

    private func work(for keyring: Keyring) -> DueOptions.Work? {
        due.work(for: keyring, newRoot: newRoot)
    }

    private func tell(_ report: RotationReport) throws {
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
                ? Self.afterNewRoot
                : "a rotation takes access from nobody who had the root key, a root backup or a "
                    + "credential: coffer revoke does, or coffer rotate --root")
        if !report.isFinished { throw ExitCode(ExitStatus.unfinished.rawValue) }
    }

    /// Decides by the authenticated keyring what is due, and rotates.
    ///
    /// - Returns: `nil` if no key is due.
    /// - Throws: `ToolError` `.busy` if other programs change the keys as often as this run looks.
    private func rotate(_ opened: Store) async throws -> RotationReport? {
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
            let own = try opened.keys.ownSlotID
            for _ in 0..<3 {
                let keyring = try opened.keys.keyring
                guard let work = work(for: keyring) else { return nil }
                let slots = work == .root ? try slots(of: keyring, own: own) : nil
                let report = try await opened.rotate(
                    newRoot: slots, maximumPause: pause.duration,
                    if: { self.work(for: $0) == work }, progress: show)
                if let report { return report }
            }
            guard work(for: try opened.keys.keyring) != nil else { return nil }
            throw ToolError(
                .busy, "other programs change the keys of \(store.path) at the same time",
                hint: "Run the same command again.")
        }
    }

    /// The slots of a new root.
    private func slots(of keyring: Keyring, own: KeySlot.ID) throws -> Store.NewRootSlots? {
        guard let newRoot else { return nil }
        let dropped = try newRoot.numbers(in: keyring, of: store.path)
        guard !dropped.isEmpty || newRoot.dropped.isEmpty else {
            // The run that began the replacement has dropped them. It needs no further root.
            for name in newRoot.dropped where name.isShared {
                Terminal.warn(
                    "an earlier replacement of the root is finished, and there is no slot \(name): "
                        + "it was dropped then, or has another name")
            }
            return nil
        }
        return Store.NewRootSlots(dropping: dropped) { [path = store.path] plan in
            try newRoot.kept.keep(in: &plan, dropping: dropped, own: own, for: path)
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
