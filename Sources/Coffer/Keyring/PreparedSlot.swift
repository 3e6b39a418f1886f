/// A slot that is ready to be written under the lock of a keyring. Only its number is missing.
struct PreparedSlot: ~Copyable, Sendable {
    let kind: KeyringSlot.Kind
    let label: SlotLabel
    /// The secret that wraps the root. Empty for a recipient.
    let secret: SecretBytes
    let derivation: Derivation?
    let blob: [UInt8]
    /// The wrapped root of the slot to replace, as it was; `nil` for an additional slot.
    let replaced: [UInt8]?
    /// The commitments of slots that the passphrase was compared with, by another derivation.
    let compared: Set<[UInt8]>

    private init(
        _ kind: KeyringSlot.Kind, _ label: SlotLabel, _ secret: consuming SecretBytes,
        replacing replaced: KeyringSlot?, derivation: Derivation? = nil, blob: [UInt8] = [],
        compared: Set<[UInt8]> = []
    ) {
        self.replaced = replaced?.wrapped
        self.kind = kind
        self.label = label
        self.secret = secret
        self.derivation = derivation
        self.blob = blob
        self.compared = compared
    }

    /// Derives the passphrase, or calls the service that wraps an external secret.
    ///
    /// - Parameters:
    ///   - content: The keyring that gets the slot. Passphrases with the same cost share a salt, so
    ///     that opening derives once.
    ///   - replaced: The number of the slot to replace; `nil` for an additional slot.
    /// - Throws: `.misuse` for a secret of a wrong size, an invalid public key, or a wrapped form
    ///   that is too long; `.alreadyExists` for a passphrase that a slot of another derivation is
    ///   for, unless that slot is replaced to get another cost; `.tooCostly`; what `wrap` throws,
    ///   as the cause of `.io`.
    init(
        _ new: borrowing NewSlot, label: SlotLabel, cost: KeyCost, memoryMax: Int,
        for content: KeyringContent, replacing replaced: UInt16? = nil
    ) throws(StoreError) {
        try new.check()
        let old = content.slots.first { $0.id == replaced }
        switch new.kind {
        case .passphrase:
            try cost.check(memoryMax: memoryMax)
            let shared = content.slots.first { $0.cost == cost && $0.id != replaced }
            let derivation =
                shared.flatMap { Derivation(of: $0) }
                ?? Derivation(
                    salt: .random(byteCount: KeyringSlot.saltByteCount), cost: cost)
            let slots = content.slots.filter { $0.id != replaced || $0.cost == cost }
            let others = Set(slots.compactMap { Derivation(of: $0) }).subtracting([derivation])
            for other in others where (try? other.cost.check(memoryMax: memoryMax)) != nil {
                try content.requireNoSlot(
                    of: other, for: try other.secret(of: new.secret), replacing: replaced,
                    cost: cost)
            }
            let secret = try derivation.secret(of: new.secret)
            let compared = Set(slots.map(\.commitment))
            self.init(
                .passphrase, label, secret, replacing: old, derivation: derivation,
                compared: compared)
        case .keyFile, .recoveryKey:
            self.init(new.kind, label, new.secret.copy(), replacing: old)
        case .recipient:
            self.init(
                .recipient, label, new.secret.copy(), replacing: old, blob: new.publicKey)
        case .external:
            self.init(
                .external, label, new.secret.copy(), replacing: old, blob: try new.wrapped())
        }
    }
}
