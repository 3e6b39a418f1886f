/// Which slots a keyring keeps when its root key is replaced, each with the secret that opens it.
///
/// ```swift
/// try store.replaceRootKey(dropping: [leaver]) { plan in
///     try plan.keep(ops, .passphrase(text))
/// }
/// ```
///
/// The new root has to be wrapped for each slot that stays. The slots of recipients, and the slot
/// that opened the store, need nobody: they stay by themselves.
public struct RootKeyPlan: Sendable {
    /// The slots before the replacement.
    public var slots: [KeySlot] { content.slots.map { KeySlot($0) }.sorted { $0.id < $1.id } }

    let content: KeyringContent
    private let memoryMax: Int
    private var kept: [UInt16: Kept] = [:]
    private var dropped: Set<UInt16> = []

    private struct Kept: Sendable {
        let secret: KeyBox<SlotSecret>
        /// The new wrapped form of an external secret; `nil` keeps that of the slot.
        var blob: [UInt8]?
        /// The commitment of the slot that the secret was made for.
        let commitment: [UInt8]
    }

    init(_ content: KeyringContent, memoryMax: Int) {
        (self.content, self.memoryMax) = (content, memoryMax)
    }

    /// Keeps a slot, with its present credential.
    ///
    /// - Parameters:
    ///   - id: The number of the slot, which it keeps.
    ///   - credential: What opens the slot. For an external slot: the secret that its service has
    ///     unwrapped. Stores that are open by the slot go on.
    /// - Throws: `StoreError` `.wrongKey` if the slot is not for the credential; `.notFound`;
    ///   `.tooCostly`; `.misuse` for a secret of a wrong size.
    /// - Complexity: For a passphrase one derivation, which blocks the thread.
    public mutating func keep(
        _ id: KeySlot.ID, _ credential: borrowing KeyCredential
    ) throws(StoreError) {
        let slot = try content.slot(id)
        try keep(
            SlotSecret(of: slot, id: content.id, from: credential, memoryMax: memoryMax), of: slot)
    }

    /// Keeps an external slot, with a new secret. Stores that are open by the slot have to be
    /// opened again.
    ///
    /// - Parameters:
    ///   - id: The number of the slot, which it keeps.
    ///   - wrap: As in `NewSlot.external`.
    /// - Throws: `StoreError` `.misuse` for a slot of another kind or a wrapped form that is too
    ///   long; `.notFound`; `.io` with the error of `wrap` as its cause.
    public mutating func keep(_ id: KeySlot.ID, wrap: @escaping NewSlot.Wrap) throws(StoreError) {
        let slot = try content.slot(id)
        guard slot.kind == .external else {
            throw StoreError(
                .misuse, "slot \(id) is not external, so no service wraps its secret",
                hint: "Keep it by its credential.")
        }
        let new = NewSlot.external(wrap)
        let blob = try new.wrapped()
        try keep(SlotSecret(.external, of: id, new.secret.copy()), of: slot, blob: blob)
    }

    mutating func keep(
        _ secret: consuming SlotSecret, of slot: KeyringSlot, blob: [UInt8]? = nil
    ) throws(StoreError) {
        kept[slot.id] = Kept(secret: KeyBox(secret), blob: blob, commitment: slot.commitment)
    }

    /// Keeps the slot that opened the store by its own secret, unless it is kept already, or was
    /// changed since.
    mutating func keepOwn(_ secret: borrowing SlotSecret) throws(StoreError) {
        let slot = content.slots.first { $0.id == secret.slotID && $0.kind == secret.kind }
        guard let slot, slot.kind != .recipient, kept[slot.id] == nil,
            try slot.root(by: secret.bytes, id: content.id) != nil
        else { return }
        try keep(secret.copy(), of: slot)
    }

    /// Drops slots.
    ///
    /// - Throws: `.notFound`; `.lastSlot` if no slot stays.
    mutating func drop(_ ids: [KeySlot.ID]) throws(StoreError) {
        for id in ids { dropped.insert(try content.slot(id).id) }
        guard dropped.count < content.slots.count else { throw Self.noSlot }
    }

    private static let noSlot = StoreError(
        .lastSlot, "no slot stays: nothing would open the store",
        hint: "Add a slot first, or drop fewer. Nothing was changed.")

    // MARK: The new slots

    /// Wraps the new root for each slot that stays.
    ///
    /// - Parameter content: The keyring's. Another process may have changed it since the plan was
    ///   made.
    /// - Throws: `.misuse` for a slot that is neither kept nor dropped; `.busy` if a slot was
    ///   changed since; `.lastSlot` if no slot stays; `.needsNewerProgram` for a slot of a later
    ///   version.
    func wrap(
        _ root: borrowing RootKey, in content: inout KeyringContent
    ) throws(StoreError) {
        for (index, place) in content.places.enumerated() {
            switch place {
            case .free: break
            case .unknown:
                throw StoreError(
                    .needsNewerProgram, "a later version of Coffer has made a slot of the keyring",
                    hint: "Update this program.")
            case .slot(let slot) where dropped.contains(slot.id):
                content.places[index] = .free
            case .slot(let slot):
                content.places[index] = .slot(try wrapped(root, slot))
            }
        }
        // Another process may have removed one that was to stay.
        guard !content.slots.isEmpty else { throw Self.noSlot }
    }

    private func wrapped(
        _ root: borrowing RootKey, _ old: KeyringSlot
    ) throws(StoreError) -> KeyringSlot {
        let isRecipient = old.kind == .recipient
        let kept = kept[old.id]
        if !isRecipient, kept == nil { throw Self.notKept(old) }
        if let kept, kept.commitment != old.commitment { throw Self.changed(old) }
        var slot = KeyringSlot(
            kind: old.kind, id: old.id, cost: old.cost, derivationSalt: old.derivationSalt,
            slotSalt: isRecipient ? old.slotSalt : .random(byteCount: KeyringSlot.saltByteCount),
            made: old.made, changed: old.changed, label: old.label, blob: kept?.blob ?? old.blob)
        if isRecipient {
            try slot.wrap(root, id: content.id)
        } else if let kept {
            try slot.wrap(root, by: kept.secret.key.bytes, id: content.id)
        }
        return slot
    }

    private static func notKept(_ slot: KeyringSlot) -> StoreError {
        let slot = KeySlot(slot)
        let label = slot.label.isEmpty ? "" : " \(slot.label)"
        return StoreError(
            .misuse, "slot \(slot.id) (\(slot.kind)\(label)) is neither kept nor dropped",
            hint: "Keep it by its credential, or drop it. Nothing was changed.")
    }

    private static func changed(_ slot: KeyringSlot) -> StoreError {
        StoreError(
            .busy, "another process has changed slot \(slot.id) meanwhile",
            hint: "Try again. Nothing was changed.")
    }
}
