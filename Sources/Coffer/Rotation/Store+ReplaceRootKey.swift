extension Store {
    /// Replaces the root key of the keyring, and encrypts every page of the file with a key of the
    /// new root.
    ///
    /// ```swift
    /// try store.replaceRootKey(dropping: [leaver]) { plan in
    ///     try plan.keep(ops, .passphrase(text))
    /// }
    /// ```
    ///
    /// Only a new root takes access from somebody who had a credential, a root backup, or a copy of
    /// the keyring. Nothing takes from anybody what was copied while the access was there: earlier
    /// copies of the file with its keyring open as before.
    ///
    /// The slots of recipients and the slot that opened this store stay by themselves. Each other
    /// slot is either kept by its credential or dropped. Processes that opened the store by a slot
    /// that stays go on; those of a dropped slot end with `.wrongKey`. Root backups of the former
    /// root no longer help: make a new one.
    ///
    /// Reads and writes wait as in `rotate(maximumPause:progress:)`. After a crash every slot
    /// that stays opens the store, and ``Keyring/isReplacingRoot`` may be set: this method, or
    /// `rotate`, then finishes.
    ///
    /// - Parameters:
    ///   - ids: The numbers of the slots to drop. While an earlier replacement is unfinished, those
    ///     that are gone already are ignored.
    ///   - maximumPause: As in `rotate`.
    ///   - keep: Keeps slots by their credentials, before anything is locked.
    ///   - progress: As in `rotate`.
    /// - Returns: What was changed, and what is left to do.
    /// - Throws: `StoreError` `.misuse` for a slot that is neither kept nor dropped; `.lastSlot` if
    ///   no slot stays; `.notFound` for a slot that does not exist; `.needsNewerProgram` for a slot
    ///   of a later version; errors of `keep`; otherwise as `rotate`. The key was not changed then,
    ///   unless the error says so.
    /// - Complexity: As `rotate`.
    @discardableResult
    public func replaceRootKey(
        dropping ids: [KeySlot.ID] = [], maximumPause: Duration? = nil,
        keeping keep: (inout RootKeyPlan) throws -> Void = { _ in },
        progress: (@Sendable (RotationProgress) -> Void)? = nil
    ) throws -> RotationReport {
        let rotation = KeyRotation(
            core, maximumPause: maximumPause, progress: progress)
        return try rotation.replaceRoot(dropping: ids, keeping: keep)
    }

    /// Gives the store a new root key, without blocking a thread of the cooperative pool.
    ///
    /// Cancelling the task ends a replacement that has not begun to write.
    ///
    /// - Parameters:
    ///   - ids: As in the synchronous form.
    ///   - maximumPause: As in the synchronous form.
    ///   - keep: As in the synchronous form. Runs on a thread that may block.
    ///   - progress: As in the synchronous form.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form; `CancellationError`.
    @discardableResult
    public func replaceRootKey(
        dropping ids: [KeySlot.ID] = [], maximumPause: Duration? = nil,
        keeping keep: @escaping @Sendable (inout RootKeyPlan) throws -> Void = { _ in },
        progress: (@Sendable (RotationProgress) -> Void)? = nil
    ) async throws -> RotationReport {
        try await Self.cancellableOffPool { [core] cancellation in
            try KeyRotation(
                core, maximumPause: maximumPause, progress: progress, cancellation: cancellation
            ).replaceRoot(dropping: ids, keeping: keep)
        }
    }
}

extension KeyRotation {
    /// Replaces the root. Finishes an earlier replacement first; that is all if each slot to drop
    /// is gone.
    func replaceRoot(
        dropping ids: [KeySlot.ID], keeping keep: (inout RootKeyPlan) throws -> Void
    ) throws -> RotationReport {
        try core.requireOutside()
        try follow()
        let open = try StoreKeys(core).changeable()
        try requireNeeded(open)
        let before = try open.current().content
        var ids = ids
        if before.hasFormerRoot {
            let present = Set(before.slots.map(\.id))
            ids.removeAll { !present.contains($0) }
            let report = try run()
            // Otherwise the pages had the new root already, and only the former one was left.
            if ids.isEmpty, report.isNewRoot { return report }
        }
        var plan = RootKeyPlan(try open.current().content, memoryMax: open.memoryMax)
        try plan.drop(ids)
        try keep(&plan)
        try plan.keepOwn(open.secret().key)
        var rotation = self
        rotation.plan = plan
        if before.hasFormerRoot { rotation.condition = { _ in } }
        return try rotation.run()
    }
}
