/// The slots of an open store's keyring.
///
/// ```swift
/// let ops = try await store.keys.add(.passphrase(second), label: "ops")
/// try await store.keys.change(ops.id, to: .passphrase(new))
/// try await store.keys.remove(ops.id)
/// ```
///
/// A change of a slot writes 32 KiB, whatever the size of the store, and touches no page of the
/// database. After a slot is removed, an earlier copy of the keyring still gives access.
///
/// The asynchronous forms do the same as the synchronous ones, without blocking a thread of the
/// cooperative pool. Cancelling the task does not stop a change.
public struct StoreKeys: Sendable {
    let core: StoreCore

    init(_ core: StoreCore) {
        self.core = core
    }

    // MARK: Reading

    /// The slots, in the order of their places in the file.
    ///
    /// - Throws: `StoreError` `.misuse` for a store without a keyring, or while the root is not
    ///   kept; `.keyringMissing`, `.keyringDamaged`, `.keyringMismatch`.
    /// - Complexity: O(1): the file is read and authenticated.
    public var slots: [KeySlot] { get throws { try keyring.slots } }

    /// The public part of the keyring: its slots, and the ids and ages of the keys. Unlike
    /// ``Keyring/init(of:)``, this is authenticated.
    ///
    /// - Throws: As ``slots``.
    /// - Complexity: O(1): the file is read and authenticated.
    public var keyring: Keyring {
        get throws {
            let (area, isWhole) = try open().read()
            return Keyring(area.content, isWhole: isWhole)
        }
    }

    /// The slot that opened this store.
    ///
    /// - Throws: `StoreError` `.misuse` for a store without a keyring.
    public var ownSlotID: KeySlot.ID { get throws { try open().slotID } }

    // MARK: Adding

    /// Adds a slot for another credential.
    ///
    /// - Parameters:
    ///   - new: The credential.
    ///   - label: The name of the slot in lists: at most 118 bytes, without control characters.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The slot, with its number.
    /// - Throws: `StoreError` `.alreadyExists` if a slot is for this credential; `.misuse` for a
    ///   secret of a wrong size, a label that cannot be shown, a store without a keyring, or while
    ///   the root is not kept; `.tooBig` for a sixteenth slot; `.tooCostly`; `.busy` if another
    ///   process changes the keyring for longer than `waitTimeout`; `.keyringMissing`,
    ///   `.keyringMismatch`, `.keyringDamaged`; `.full`, `.io`, `.readOnly`. After `.full` and
    ///   `.io` the keyring is either as it was or has the slot; otherwise nothing was written.
    /// - Complexity: Two writes of 16 KiB, each synced; for a passphrase one derivation.
    @discardableResult
    public func add(
        _ new: borrowing NewSlot, label: String, cost: KeyCost = .standard
    ) throws -> KeySlot {
        let prepared = try prepared(new, label, cost)
        return try add(prepared)
    }

    /// Adds a slot for another credential.
    ///
    /// - Parameters:
    ///   - new: The credential.
    ///   - label: As in the synchronous form.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The slot, with its number.
    /// - Throws: As the synchronous form.
    @discardableResult
    public func add(
        _ new: borrowing NewSlot, label: String, cost: KeyCost = .standard
    ) async throws -> KeySlot {
        let new = KeyBox(new.copy())
        return try await Store.offPool { try add(new.key, label: label, cost: cost) }
    }

    /// Adds a slot for a new recovery key: 56 letters and digits for paper.
    ///
    /// ```swift
    /// try store.keys.addRecoveryKey(label: "safe") { letters in
    ///     show(letters)
    ///     return readFromPaper()
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - label: As in `add`.
    ///   - askBack: Shows the letters, which it must not keep. Returns the letters that the person
    ///     has typed from the paper, in either case, with or without dashes.
    /// - Returns: The slot.
    /// - Throws: `StoreError` `.misuse` if `askBack` returns other letters; errors of `askBack`;
    ///   otherwise as adding any slot. Nothing was written then.
    @discardableResult
    public func addRecoveryKey(
        label: String, askBack: (_ letters: UnsafeRawBufferPointer) throws -> [UInt8]
    ) throws -> KeySlot {
        let new = NewSlot.recoveryKey()
        let prepared = try prepared(new, label, .standard)
        try KeyLetters.recoveryKey.requireBack(new.secret, askBack)
        return try add(prepared)
    }

    /// Adds a slot for a new recovery key: 56 letters and digits for paper.
    ///
    /// - Parameters:
    ///   - label: As in the synchronous form.
    ///   - askBack: As in the synchronous form.
    /// - Returns: The slot.
    /// - Throws: As the synchronous form.
    @discardableResult
    public func addRecoveryKey(
        label: String, askBack: (_ letters: UnsafeRawBufferPointer) async throws -> [UInt8]
    ) async throws -> KeySlot {
        let new = KeyBox(NewSlot.recoveryKey())
        let slot = try await Store.offPool { KeyBox(try prepared(new.key, label, .standard)) }
        try await KeyLetters.recoveryKey.requireBack(new, askBack)
        return try await Store.offPool { try add(slot.key) }
    }

    // MARK: Changing

    /// Gives a slot another credential, in one write. At each moment exactly one of both opens it.
    ///
    /// - Parameters:
    ///   - id: The number of the slot, which it keeps.
    ///   - new: The new credential, of any kind. A slot can have the passphrase that it has only
    ///     with another cost.
    ///   - label: The new label; `nil` keeps the old one.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The slot.
    /// - Throws: `StoreError` `.notFound` if no slot has this number; `.alreadyExists` if a slot,
    ///   this one or another, is for the credential already; otherwise as `add`.
    /// - Complexity: Two writes of 16 KiB, each synced; for a passphrase one derivation for each
    ///   cost and salt in the keyring, to compare it, and one for a salt that is new.
    @discardableResult
    public func change(
        _ id: KeySlot.ID, to new: borrowing NewSlot, label: String? = nil,
        cost: KeyCost = .standard
    ) throws -> KeySlot {
        let keyring = try changeable()
        let content = try keyring.current().content
        let old = try content.slot(id).label
        let prepared = try PreparedSlot(
            new, label: try label.map { try SlotLabel($0) } ?? old, cost: cost,
            memoryMax: keyring.memoryMax, for: content, replacing: id)
        let now = now
        let slot = try keyring.change { (content, root) throws(StoreError) in
            KeySlot(
                try content.replace(
                    id, by: prepared, keepsLabel: label == nil, under: root, now: now))
        }
        if try id == keyring.secret().key.slotID {
            // A recipient's is empty: only its identity opens the slot.
            keyring.keep(SlotSecret(prepared.kind, of: id, prepared.secret.copy()))
        }
        core.pool.events.slotChanged(.changed, slot.id, slot.kind)
        return slot
    }

    /// Gives a slot another credential, in one write. At each moment exactly one of both opens it.
    ///
    /// - Parameters:
    ///   - id: The number of the slot, which it keeps.
    ///   - new: The new credential, of any kind.
    ///   - label: The new label; `nil` keeps the old one.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The slot.
    /// - Throws: As the synchronous form.
    @discardableResult
    public func change(
        _ id: KeySlot.ID, to new: borrowing NewSlot, label: String? = nil,
        cost: KeyCost = .standard
    ) async throws -> KeySlot {
        let new = KeyBox(new.copy())
        return try await Store.offPool { try change(id, to: new.key, label: label, cost: cost) }
    }

    /// Gives a slot another label. Its credential stays.
    ///
    /// - Parameters:
    ///   - id: The number of the slot.
    ///   - label: As in `add`.
    /// - Returns: The slot.
    /// - Throws: `StoreError` `.notFound` if no slot has this number; otherwise as `add`.
    /// - Complexity: Two writes of 16 KiB, each synced.
    @discardableResult
    public func rename(_ id: KeySlot.ID, to label: String) throws -> KeySlot {
        let label = try SlotLabel(label)
        let slot = try changeable().change { (content, _) throws(StoreError) in
            KeySlot(try content.rename(id, to: label))
        }
        core.pool.events.slotChanged(.renamed, id, slot.kind)
        return slot
    }

    /// Gives a slot another label. Its credential stays.
    ///
    /// - Parameters:
    ///   - id: The number of the slot.
    ///   - label: As in `add`.
    /// - Returns: The slot.
    /// - Throws: As the synchronous form.
    @discardableResult
    public func rename(_ id: KeySlot.ID, to label: String) async throws -> KeySlot {
        try await Store.offPool { try rename(id, to: label) }
    }

    /// Removes a slot.
    ///
    /// Its credential no longer opens the store. An earlier copy of the keyring still gives access.
    ///
    /// - Throws: `StoreError` `.notFound` if no slot has this number; `.lastSlot` if it is the only
    ///   slot; otherwise as `add`.
    public func remove(_ id: KeySlot.ID) throws {
        let slot = try changeable().change { (content, _) throws(StoreError) in
            KeySlot(try content.remove(id))
        }
        core.pool.events.slotChanged(.removed, id, slot.kind)
    }

    /// Removes a slot.
    ///
    /// - Throws: As the synchronous form.
    public func remove(_ id: KeySlot.ID) async throws {
        try await Store.offPool { try remove(id) }
    }

    // MARK: Steps

    private func prepared(
        _ new: borrowing NewSlot, _ label: String, _ cost: KeyCost
    ) throws -> PreparedSlot {
        let keyring = try changeable()
        return try PreparedSlot(
            new, label: SlotLabel(label), cost: cost, memoryMax: keyring.memoryMax,
            for: keyring.current().content)
    }

    private func add(_ prepared: borrowing PreparedSlot) throws -> KeySlot {
        let now = now
        let slot = try changeable().change { (content, root) throws(StoreError) in
            KeySlot(try content.add(prepared, under: root, now: now))
        }
        core.pool.events.slotChanged(.added, slot.id, slot.kind)
        return slot
    }

    var now: Int64 { core.configuration.secondsSince1970 }

    /// The keyring of the open store.
    ///
    /// - Throws: `.misuse` for a store without a keyring.
    func open() throws(StoreError) -> OpenKeyring {
        guard let keyring = core.pool.file?.keyring else { throw Self.noKeyring }
        return keyring
    }

    static var noKeyring: StoreError {
        StoreError(
            .misuse, "the store has no keyring",
            hint: "A copy can get one: backup(to:key:) for a credential.")
    }

    /// The keyring of a store that may be changed.
    ///
    /// - Throws: `.readOnly`; `.misuse` for a store without a keyring.
    func changeable() throws(StoreError) -> OpenKeyring {
        guard core.pool.mode != .readOnly else {
            throw StoreError(
                .readOnly, "the store was opened for reading only",
                hint: "Open it in another mode to change its slots.")
        }
        return try open()
    }
}

extension Store {
    /// The slots of the keyring. A store that was opened with a key of its own has none.
    public var keys: StoreKeys { StoreKeys(core) }
}

extension KeyLetters {
    /// Shows a secret, and compares it with the text that `askBack` returns.
    ///
    /// - Throws: `.misuse` for another secret; errors of `askBack`.
    func requireBack(
        _ secret: borrowing SecretBytes,
        _ askBack: (_ letters: UnsafeRawBufferPointer) throws -> [UInt8]
    ) throws {
        var text = try withText(of: secret, askBack)
        try requireSame(&text, as: secret)
    }

    /// Shows the secret of a new slot, and compares it with the text that `askBack` returns.
    ///
    /// - Throws: `.misuse` for another secret; errors of `askBack`.
    fileprivate func requireBack(
        _ new: KeyBox<NewSlot>,
        _ askBack: (_ letters: UnsafeRawBufferPointer) async throws -> [UInt8]
    ) async throws {
        var text = try await withText(of: new.key.secret, waiting: askBack)
        try requireSame(&text, as: new.key.secret)
    }

    /// - Parameter text: Wiped.
    private func requireSame(
        _ text: inout [UInt8], as secret: borrowing SecretBytes
    ) throws(StoreError) {
        let typed = SecretBytes(text)
        text.withUnsafeMutableBytes { $0.wipe() }
        let returned = try typed.withUnsafeBytes { (bytes) throws(StoreError) -> SecretBytes in
            try self.secret(bytes)
        }
        guard returned.isEqual(to: secret) else {
            throw StoreError(
                .misuse, "the letters that came back are another key's",
                hint: "Nothing was written.")
        }
    }
}
