extension KeyringContent {
    /// Adds a slot.
    ///
    /// - Returns: The slot, with its new number.
    /// - Throws: `.alreadyExists` if a slot is for the same credential; `.tooBig` if all places are
    ///   taken; `.misuse` for a third cost of passphrases.
    mutating func add(
        _ prepared: borrowing PreparedSlot, under root: borrowing RootKey, now: Int64
    ) throws(StoreError) -> KeyringSlot {
        try requireNew(prepared, replacing: nil)
        guard nextSlotID < .max else {
            throw StoreError(
                .tooBig, "the keyring has given all numbers of slots",
                hint: "Make a copy of the store, which gets a keyring of its own.")
        }
        guard let index = places.firstIndex(of: .free) else {
            throw StoreError(
                .tooBig, "the keyring has \(Self.placeCount) slots, which is the most",
                hint: "Remove a slot that is not in use.")
        }
        let slot = try slot(prepared, nextSlotID, made: now, now: now, under: root)
        try put(slot, at: index)
        nextSlotID += 1
        return slot
    }

    /// Gives a slot another credential. It keeps its number.
    ///
    /// - Throws: `.notFound` if no slot has this number; `.busy` if its credential is not the one
    ///   that it had when the new one was prepared; `.alreadyExists` if a slot is for the same
    ///   credential, whether this one or another.
    mutating func replace(
        _ id: UInt16, by prepared: borrowing PreparedSlot, keepsLabel: Bool = false,
        under root: borrowing RootKey, now: Int64
    ) throws(StoreError) -> KeyringSlot {
        let (index, old) = try place(of: id)
        // The other change has returned by now, and must not be undone.
        guard old.wrapped == prepared.replaced else { throw Self.changedMeanwhile }
        try requireNew(prepared, replacing: id)
        var slot = try slot(prepared, id, made: old.made, now: now, under: root)
        // The label of now: another process may have renamed the slot.
        if keepsLabel { slot.label = old.label }
        try put(slot, at: index)
        return slot
    }

    /// Gives a slot another label.
    ///
    /// - Throws: `.notFound` if no slot has this number.
    mutating func rename(_ id: UInt16, to label: SlotLabel) throws(StoreError) -> KeyringSlot {
        var (index, slot) = try place(of: id)
        slot.label = label
        places[index] = .slot(slot)
        return slot
    }

    private mutating func put(_ slot: KeyringSlot, at index: Int) throws(StoreError) {
        places[index] = .slot(slot)
        guard derivationCount <= Self.maximumDerivationCount else {
            throw StoreError(
                .misuse, "the passphrases of a keyring have at most two different costs",
                hint: "Use a cost that another slot has, or change those slots first.")
        }
    }

    /// Removes a slot.
    ///
    /// - Returns: The removed slot.
    /// - Throws: `.notFound` if no slot has this number; `.lastSlot` if it is the only slot.
    @discardableResult
    mutating func remove(_ id: UInt16) throws(StoreError) -> KeyringSlot {
        let (index, slot) = try place(of: id)
        guard slots.count > 1 else {
            throw StoreError(
                .lastSlot, "slot \(id) is the only one: nothing would open the store without it",
                hint: "Add another slot first.")
        }
        places[index] = .free
        return slot
    }

    /// The slot of a number.
    ///
    /// - Throws: `.notFound`.
    func slot(_ id: UInt16) throws(StoreError) -> KeyringSlot { try place(of: id).slot }

    private func place(of id: UInt16) throws(StoreError) -> (index: Int, slot: KeyringSlot) {
        for (index, place) in places.enumerated() {
            if case .slot(let slot) = place, slot.id == id { return (index, slot) }
        }
        throw StoreError(
            .notFound, "the keyring has no slot \(id)", hint: "Its list of slots has the numbers.")
    }

    /// Refuses a credential that a slot has already: removing one of the two slots would leave it
    /// in, and a change to the same credential would change nothing.
    private func requireNew(
        _ prepared: borrowing PreparedSlot, replacing id: UInt16?
    ) throws(StoreError) {
        if let derivation = prepared.derivation {
            // Deriving the passphrase again under the lock would take too long.
            let isCompared = slots.allSatisfy { slot in
                slot.kind != .passphrase || slot.id == id || Derivation(of: slot) == derivation
                    || prepared.compared.contains(slot.commitment)
            }
            guard isCompared else { throw Self.changedMeanwhile }
        }
        guard prepared.kind == .recipient else {
            return try requireNoSlot(
                of: prepared.derivation, kind: prepared.kind, for: prepared.secret, replacing: id,
                cost: prepared.derivation?.cost)
        }
        let other = slots.first { $0.kind == .recipient && $0.blob == prepared.blob }
        if let other { throw Self.isTaken(other, replacing: id) }
    }

    /// Refuses a secret that a slot has already.
    ///
    /// - Parameters:
    ///   - derivation: The derivation of the slots to compare; `nil` for slots without one.
    ///   - id: The number of the slot that would get the secret; `nil` for a new slot.
    ///   - cost: The cost that it would get. The slot may have the secret with another cost.
    func requireNoSlot(
        of derivation: Derivation?, kind: KeyringSlot.Kind = .passphrase,
        for secret: borrowing SecretBytes, replacing id: UInt16?, cost: KeyCost?
    ) throws(StoreError) {
        for slot in slots
        where slot.kind == kind && Derivation(of: slot) == derivation
            && (slot.id != id || slot.cost == cost)
        {
            guard try slot.root(by: secret, id: self.id) == nil else {
                throw Self.isTaken(slot, replacing: id)
            }
        }
    }

    private static var changedMeanwhile: StoreError {
        StoreError(
            .busy, "another process has changed a slot of the keyring meanwhile",
            hint: "Try again. Nothing was changed.")
    }

    private static func isTaken(_ slot: KeyringSlot, replacing id: UInt16?) -> StoreError {
        StoreError(
            .alreadyExists, "slot \(slot.id) is for this credential already",
            hint: slot.id == id
                ? "Nothing was changed. Give it another credential."
                : "Change that slot, or remove it first.", slotID: slot.id)
    }

    private func slot(
        _ prepared: borrowing PreparedSlot, _ id: UInt16, made: Int64, now: Int64,
        under root: borrowing RootKey
    ) throws(StoreError) -> KeyringSlot {
        let zeros = [UInt8](repeating: 0, count: KeyringSlot.saltByteCount)
        let isRecipient = prepared.kind == .recipient
        var slot = KeyringSlot(
            kind: prepared.kind, id: id, cost: prepared.derivation?.cost,
            derivationSalt: prepared.derivation?.salt ?? zeros,
            slotSalt: isRecipient ? zeros : .random(byteCount: KeyringSlot.saltByteCount),
            made: made, changed: now, label: prepared.label, blob: prepared.blob)
        if isRecipient {
            try slot.wrap(root, id: self.id)
        } else {
            try slot.wrap(root, by: prepared.secret, id: self.id)
        }
        return slot
    }
}
