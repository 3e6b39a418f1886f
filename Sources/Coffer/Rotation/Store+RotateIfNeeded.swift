import Synchronization

extension Store {
    /// The slots that a replacement of the root key drops and keeps.
    package struct NewRootSlots: Sendable {
        fileprivate let dropped: [KeySlot.ID]
        fileprivate let keep: @Sendable (inout RootKeyPlan) throws -> Void

        package init(
            dropping dropped: [KeySlot.ID],
            keeping keep: @escaping @Sendable (inout RootKeyPlan) throws -> Void
        ) {
            (self.dropped, self.keep) = (dropped, keep)
        }
    }

    /// How long a rotation of a store of this size is expected to hold up writes, at the least.
    package static func rotationPause(byteCount: Int) -> Duration {
        KeyRotation.expectedPause(byteCount: byteCount)
    }

    /// Rotates the key, or replaces the root key, unless another process has done it meanwhile.
    ///
    /// - Parameters:
    ///   - newRoot: `nil` to keep the root key.
    ///   - maximumPause: As in ``rotate(maximumPause:progress:)``.
    ///   - isNeeded: Decides by the authenticated keyring. Called at the beginning, and again with
    ///     the lock of rotations. Not asked while the root is being replaced: this run finishes it.
    ///   - progress: As in `rotate`.
    /// - Returns: As `rotate`; `nil` if `isNeeded` returned `false`. Nothing was changed then.
    /// - Throws: As `rotate` and `replaceRootKey`.
    package func rotate(
        newRoot: NewRootSlots?, maximumPause: Duration?,
        if isNeeded: @escaping @Sendable (Keyring) -> Bool,
        progress: (@Sendable (RotationProgress) -> Void)?
    ) async throws -> RotationReport? {
        try await Self.cancellableOffPool { [core] cancellation in
            var rotation = KeyRotation(
                core, maximumPause: maximumPause, progress: progress, cancellation: cancellation)
            let wasNeeded = Mutex(true)
            rotation.condition = { keyring throws(StoreError) in
                guard isNeeded(keyring) else {
                    wasNeeded.withLock { $0 = false }
                    throw StoreError(.cancelled, "the store needs no rotation")
                }
            }
            do {
                guard let newRoot else { return try rotation.run() }
                return try rotation.replaceRoot(dropping: newRoot.dropped, keeping: newRoot.keep)
            } catch {
                guard wasNeeded.withLock({ $0 }) else { return nil }
                throw error
            }
        }
    }
}
