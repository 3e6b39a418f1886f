/// The secret by which a slot wraps the root: for a passphrase the derived one.
///
/// An open store keeps that of its slot. After another process has replaced the root, the store
/// finds the new one in the same slot.
struct SlotSecret: ~Copyable, Sendable {
    let kind: KeyringSlot.Kind
    let slotID: UInt16
    let bytes: SecretBytes

    init(_ kind: KeyringSlot.Kind, of slotID: UInt16, _ bytes: consuming SecretBytes) {
        (self.kind, self.slotID) = (kind, slotID)
        self.bytes = bytes
    }

    borrowing func copy() -> SlotSecret { SlotSecret(kind, of: slotID, bytes.copy()) }

    /// Derives the secret of a slot from a credential.
    ///
    /// - Throws: `.wrongKey` if the slot is not for the credential; `.misuse` for a secret of a
    ///   wrong size; `.tooCostly`.
    /// - Complexity: For a passphrase one derivation.
    init(
        of slot: KeyringSlot, id: [UInt8], from credential: borrowing KeyCredential, memoryMax: Int
    ) throws(StoreError) {
        try credential.check()
        let other = StoreError(
            .wrongKey, "slot \(slot.id) is not for this credential",
            hint: "The list of slots tells the kind and the label of each.")
        guard credential.kind == slot.kind, [slot.id, nil].contains(credential.slotID) else {
            throw other
        }
        if slot.kind == .recipient {
            guard try credential.publicKey() == slot.blob else { throw other }
            self.init(slot.kind, of: slot.id, credential.secret.copy())
            return
        }
        let bytes: SecretBytes
        if let derivation = Derivation(of: slot) {
            try derivation.cost.check(memoryMax: memoryMax)
            bytes = try derivation.secret(of: credential.secret)
        } else {
            bytes = credential.secret.copy()
        }
        guard try slot.root(by: bytes, id: id) != nil else { throw other }
        self.init(slot.kind, of: slot.id, bytes)
    }
}

extension KeyringArea {
    /// Unwraps the root by the kept secret of a slot, and authenticates the whole area with it.
    ///
    /// - Throws: `.wrongKey` if the slot is gone, or has another secret by now; `.keyringDamaged`.
    func unlocked(by secret: borrowing SlotSecret) throws(StoreError) -> UnlockedKeyring {
        if secret.kind == .recipient {
            return try unlocked(
                by: KeyCredential(kind: .recipient, secret: secret.bytes.copy()), memoryMax: 0)
        }
        let slot = content.slots.first { $0.id == secret.slotID && $0.kind == secret.kind }
        guard let slot, let root = try slot.root(by: secret.bytes, id: content.id) else {
            throw noSlot
        }
        return try authenticated(
            UnlockedKeyring(area: self, root: root, slotID: slot.id, secret: secret.copy()))
    }
}
