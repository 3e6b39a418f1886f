/// The slots of an open store's keyring.
///
/// ```swift
/// let ops = try store.keys.add(.passphrase(second), label: "ops")
/// try store.keys.change(ops.id, to: .passphrase(new))
/// try store.keys.remove(ops.id)
/// ```
///
/// A change of a slot writes 32 KiB, whatever the size of the store, and touches no page of the
/// database. After a slot is removed, an earlier copy of the keyring still gives access.
struct StoreKeys: Sendable {
    private let core: StoreCore

    init(_ core: StoreCore) {
        self.core = core
    }

    // MARK: Reading

    /// The slots, in the order of their places in the file.
    ///
    /// - Throws: `StoreError` `.misuse` for a store without a keyring, or while the root is not
    ///   kept; `.keyringMissing`, `.keyringDamaged`, `.keyringMismatch`.
    /// - Complexity: O(1): the file is read and authenticated.
    var slots: [KeySlot] {
        get throws { try keyring().current().content.slots.map { KeySlot($0) } }
    }

    /// The slot that opened this store.
    var ownSlotID: UInt16 { get throws { try keyring().slotID } }

    // MARK: Changing

    /// Adds a slot for another credential.
    ///
    /// - Parameters:
    ///   - new: The credential.
    ///   - label: The name of the slot in lists: at most 118 bytes, without control characters.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The slot, with its number.
    /// - Throws: `StoreError` `.alreadyExists` if a slot is for this credential; `.misuse` for a
    ///   secret of a wrong size, a label that cannot be shown, a sixteenth slot, a store without a
    ///   keyring, or while the root is not kept; `.tooCostly`; `.busy` if another process changes
    ///   the keyring for longer than `waitTimeout`; `.keyringMissing`, `.keyringMismatch`,
    ///   `.keyringDamaged`; `.full`, `.io`, `.readOnly`.
    /// - Complexity: Two writes of 16 KiB, each synced; for a passphrase one derivation.
    @discardableResult
    func add(
        _ new: borrowing NewSlot, label: String, cost: KeyCost = .standard
    ) throws -> KeySlot {
        try add(new, label, cost) {}
    }

    /// Adds a slot for a new recovery key: 56 letters and digits for paper.
    ///
    /// - Parameters:
    ///   - label: As in `add`.
    ///   - askBack: Shows the letters, which it must not keep. Returns the letters that the person
    ///     has typed from the paper.
    /// - Returns: The slot.
    /// - Throws: `.misuse` if `askBack` returns other letters; errors of `askBack`; otherwise as
    ///   `add`. Nothing was written then.
    @discardableResult
    func addRecoveryKey(
        label: String, askBack: (_ letters: UnsafeRawBufferPointer) throws -> [UInt8]
    ) throws -> KeySlot {
        let new = NewSlot.recoveryKey()
        return try add(new, label, .standard) {
            try KeyLetters.recoveryKey.requireBack(new.secret, askBack)
        }
    }

    /// - Parameter confirm: Called before the lock is taken; an error ends the work there.
    private func add(
        _ new: borrowing NewSlot, _ label: String, _ cost: KeyCost, confirm: () throws -> Void
    ) throws -> KeySlot {
        let keyring = try changeable()
        let prepared = try PreparedSlot(
            new, label: SlotLabel(label), cost: cost, memoryMax: keyring.memoryMax,
            for: keyring.current().content)
        try confirm()
        let now = now
        return try keyring.change { (content, root) throws(StoreError) in
            KeySlot(try content.add(prepared, under: root, now: now))
        }
    }

    /// Gives a slot another credential, in one write. At each moment exactly one of both opens it.
    ///
    /// - Parameters:
    ///   - id: The number of the slot, which it keeps.
    ///   - new: The new credential, of any kind.
    ///   - label: The new label; `nil` keeps the old one.
    ///   - cost: As in `add`.
    /// - Returns: The slot.
    /// - Throws: `.notFound` if no slot has this number; otherwise as `add`.
    @discardableResult
    func change(
        _ id: UInt16, to new: borrowing NewSlot, label: String? = nil, cost: KeyCost = .standard
    ) throws -> KeySlot {
        let keyring = try changeable()
        let content = try keyring.current().content
        let old = try content.slot(id).label
        let prepared = try PreparedSlot(
            new, label: try label.map { try SlotLabel($0) } ?? old, cost: cost,
            memoryMax: keyring.memoryMax, for: content, replacing: id)
        let now = now
        return try keyring.change { (content, root) throws(StoreError) in
            KeySlot(try content.replace(id, by: prepared, under: root, now: now))
        }
    }

    /// Removes a slot.
    ///
    /// Its credential no longer opens the store. An earlier copy of the keyring still gives access.
    ///
    /// - Throws: `.notFound` if no slot has this number; `.lastSlot` if it is the only slot;
    ///   otherwise as `add`.
    func remove(_ id: UInt16) throws {
        try changeable().change { (content, _) throws(StoreError) in try content.remove(id) }
    }

    // MARK: The root

    /// Wipes the root key. The store goes on; the verbs that change slots throw `.misuse`.
    func lock() throws { try keyring().forgetRoot() }

    /// Keeps the root key again, until `lock()`.
    ///
    /// - Throws: `.wrongKey` if no slot is for the credential; `.keyringMismatch` if the keyring is
    ///   another store's by now.
    func unlock(_ credential: borrowing KeyCredential) throws { try keyring().unlock(credential) }

    /// Lends the root key as text for paper: `ROOT-`, then 56 letters and digits in groups of four.
    ///
    /// ``Keyring`` rebuilds a lost keyring from it. The text gives access to every epoch of the
    /// store and to every copy with the same root. The keyring counts each call before `body` runs.
    ///
    /// - Returns: What `body` returns.
    /// - Throws: As `add`; errors of `body`, after the call was counted.
    func withRootBackup<T>(_ body: (_ letters: UnsafeRawBufferPointer) throws -> T) throws -> T {
        let keyring = try changeable()
        let now = now
        try keyring.change { (content, _) throws(StoreError) in
            content.rootBackupCount = max(content.rootBackupCount, content.rootBackupCount &+ 1)
            content.lastRootBackup = now
        }
        return try KeyLetters.rootBackup.withText(of: keyring.root().key.bytes, body)
    }

    /// Writes a copy of the keyring to a new file. The content comes from memory if the store
    /// cannot read or authenticate its keyring.
    ///
    /// - Throws: `.alreadyExists` if something exists at the path; `.full`, `.io`, `.readOnly`;
    ///   `.misuse` for a store without a keyring.
    func backUp(to path: String) throws {
        let keyring = try keyring()
        let file = KeyringFile(at: try FileLocation(path), of: keyring.file.database)
        try file.makeNew(keyring.newest())
    }

    private var now: Int64 { core.configuration.secondsSince1970 }

    private func keyring() throws(StoreError) -> OpenKeyring {
        guard let keyring = core.pool.file?.keyring else {
            throw StoreError(
                .misuse, "the store has no keyring",
                hint: "It was opened with a key of its own: rekey changes that.")
        }
        return keyring
    }

    private func changeable() throws(StoreError) -> OpenKeyring {
        guard core.pool.mode != .readOnly else {
            throw StoreError(
                .readOnly, "the store was opened for reading only",
                hint: "Open it in another mode to change its slots.")
        }
        return try keyring()
    }
}

extension Store {
    /// The slots of the keyring. A store that was opened with a key of its own has none.
    var keys: StoreKeys { StoreKeys(core) }
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
