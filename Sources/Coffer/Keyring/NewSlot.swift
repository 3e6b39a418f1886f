import Crypto

/// A credential that gets a slot of a keyring: what `KeyCredential` opens later.
///
/// ```swift
/// try store.keys.add(.passphrase(text), label: "ops")
/// try store.keys.add(.recipient(publicKey), label: "billing")
/// ```
struct NewSlot: ~Copyable, Sendable {
    /// Wraps the secret of an external slot: returns a blob from which its owner gets the secret
    /// back.
    typealias Wrap = @Sendable (_ secret: UnsafeRawBufferPointer) throws -> [UInt8]

    let kind: KeyringSlot.Kind
    /// A passphrase, or 32 bytes. Of an external slot they are random; a recipient has none.
    let secret: SecretBytes
    /// Only of a recipient.
    let publicKey: [UInt8]
    /// Only of an external slot.
    let wrap: Wrap?

    init(
        _ kind: KeyringSlot.Kind, _ secret: consuming SecretBytes, publicKey: [UInt8] = [],
        wrap: Wrap? = nil
    ) {
        self.kind = kind
        self.secret = secret
        self.publicKey = publicKey
        self.wrap = wrap
    }

    /// A slot for a passphrase that a person types.
    ///
    /// - Parameter text: Must not be empty. Its UTF-8 bytes are used as they are.
    static func passphrase(_ text: String) -> NewSlot { passphrase(text.utf8) }

    /// A slot for the bytes of a passphrase, in any encoding.
    ///
    /// - Parameter bytes: Must not be empty. Copied once; wipe the source afterwards.
    static func passphrase(_ bytes: some Collection<UInt8>) -> NewSlot {
        NewSlot(.passphrase, SecretBytes(copyingAll: bytes))
    }

    /// A slot for the bytes of a key file.
    ///
    /// - Parameter bytes: 32 random bytes. Copied once; wipe the source afterwards.
    static func keyFile(_ bytes: some Collection<UInt8>) -> NewSlot {
        NewSlot(.keyFile, SecretBytes(copyingAll: bytes))
    }

    /// A slot for the holder of a private key, whom the owner of the keyring need not meet.
    ///
    /// - Parameter publicKey: The 32 bytes of an X25519 public key
    ///   ([RFC 7748](https://www.rfc-editor.org/rfc/rfc7748)).
    static func recipient(_ publicKey: some Collection<UInt8>) -> NewSlot {
        NewSlot(.recipient, SecretBytes(copyingAll: []), publicKey: Array(publicKey))
    }

    /// A slot for a secret that a service wraps, such as a KMS, a Vault or a TPM.
    ///
    /// - Parameter wrap: Gets 32 random bytes, which it must not keep, and returns the wrapped
    ///   form: at most 702 bytes, which the slot holds in the clear.
    static func external(_ wrap: @escaping Wrap) -> NewSlot {
        NewSlot(.external, .random(byteCount: KeyCredential.secretByteCount), wrap: wrap)
    }

    /// A slot for a new recovery key.
    static func recoveryKey() -> NewSlot {
        NewSlot(.recoveryKey, .random(byteCount: KeyCredential.secretByteCount))
    }

    /// A slot for the credential itself, for the first slot of a new keyring.
    ///
    /// - Throws: `.misuse` for an external secret, whose blob only its owner has.
    init(for credential: borrowing KeyCredential) throws(StoreError) {
        switch credential.kind {
        case .passphrase, .keyFile, .recoveryKey:
            self.init(credential.kind, credential.secret.copy())
        case .recipient:
            self.init(
                .recipient, SecretBytes(copyingAll: []), publicKey: try credential.publicKey())
        case .external:
            throw StoreError(
                .misuse, "an external secret opens no keyring that does not exist yet",
                hint: "Make the keyring with another credential, and add an external slot to it.")
        }
    }
}

extension SecretBytes {
    init(copyingAll bytes: some Collection<UInt8>) {
        self.init(byteCount: bytes.count) { $0.copyBytes(from: bytes) }
    }
}

/// A slot that is ready to be written, except for its number: everything that takes time is done.
struct PreparedSlot: ~Copyable {
    let kind: KeyringSlot.Kind
    let label: SlotLabel
    /// Wraps the root; no bytes for a recipient.
    fileprivate let secret: SecretBytes
    fileprivate let derivation: Derivation?
    fileprivate let blob: [UInt8]

    private init(
        _ kind: KeyringSlot.Kind, _ label: SlotLabel, _ secret: consuming SecretBytes,
        derivation: Derivation? = nil, blob: [UInt8] = []
    ) {
        self.kind = kind
        self.label = label
        self.secret = secret
        self.derivation = derivation
        self.blob = blob
    }

    /// Derives a passphrase, or has an external secret wrapped.
    ///
    /// - Parameters:
    ///   - content: The keyring that the slot is for. A slot of a passphrase shares the salt of
    ///     the other ones that have the same cost, so that opening derives once.
    ///   - replaced: The number of the slot that this one will replace; `nil` for a further slot.
    /// - Throws: `.misuse` for a secret of a wrong size, a public key that is none, or a blob that
    ///   is too long; `.tooCostly`; what `wrap` throws, as the cause of `.io`.
    init(
        _ new: borrowing NewSlot, label: SlotLabel, cost: KeyCost, memoryMax: Int,
        for content: KeyringContent, replacing replaced: UInt16? = nil
    ) throws(StoreError) {
        try new.check()
        switch new.kind {
        case .passphrase:
            try cost.check(memoryMax: memoryMax)
            let shared = content.slots.first { $0.cost == cost && $0.id != replaced }
            let derivation =
                shared.flatMap { Derivation(of: $0) }
                ?? Derivation(
                    salt: .random(byteCount: KeyringSlot.saltByteCount), cost: cost)
            let secret = try derivation.secret(of: new.secret)
            self.init(.passphrase, label, secret, derivation: derivation)
        case .keyFile, .recoveryKey: self.init(new.kind, label, new.secret.copy())
        case .recipient: self.init(.recipient, label, new.secret.copy(), blob: new.publicKey)
        case .external: self.init(.external, label, new.secret.copy(), blob: try new.wrapped())
        }
    }
}

extension NewSlot {
    /// Checks the numbers of bytes.
    fileprivate borrowing func check() throws(StoreError) {
        let byteCount = kind == .recipient ? publicKey.count : secret.byteCount
        guard kind == .passphrase ? byteCount > 0 : byteCount == KeyCredential.secretByteCount
        else { throw KeyCredential.wrongByteCount(kind, byteCount) }
        if kind == .recipient { try requireSecrecy() }
    }

    /// Refuses a public key with which everybody shares the same secret.
    ///
    /// > "recipients and senders … MUST … check whether the Diffie-Hellman shared secret is the
    /// > all-zero value and abort if so" <https://www.rfc-editor.org/rfc/rfc9180#section-7.1.4>
    ///
    /// The crypto library does not check it.
    private borrowing func requireSecrecy() throws(StoreError) {
        let isShared: Bool
        do {
            let key = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
            let secret = try Curve25519.KeyAgreement.PrivateKey()
                .sharedSecretFromKeyAgreement(with: key)
            isShared = secret.withUnsafeBytes { bytes in bytes.allSatisfy { $0 == 0 } }
        } catch {
            throw StoreError(.misuse, "the public key is not one of X25519", cause: error)
        }
        guard !isShared else {
            throw StoreError(
                .misuse, "the public key is a point of low order: everybody could open the slot")
        }
    }

    /// The wrapped form of an external secret.
    fileprivate borrowing func wrapped() throws(StoreError) -> [UInt8] {
        let blob: [UInt8]
        do {
            let wrap = wrap
            blob = try secret.withUnsafeBytes { bytes in try wrap?(bytes) ?? [] }
        } catch {
            throw StoreError(.io, "the external secret could not be wrapped", cause: error)
        }
        guard blob.count <= KeyringSlot.maximumExtensionByteCount else {
            throw StoreError(
                .misuse,
                "a wrapped secret has at most \(KeyringSlot.maximumExtensionByteCount) bytes, "
                    + "and this one has \(blob.count)")
        }
        return blob
    }
}

extension KeyringContent {
    /// Adds a slot.
    ///
    /// - Returns: The slot, with its new number.
    /// - Throws: `.misuse` if all places are taken; `.alreadyExists` if a slot has the credential.
    mutating func add(
        _ prepared: borrowing PreparedSlot, under root: borrowing RootKey, now: Int64
    ) throws(StoreError) -> KeyringSlot {
        guard nextSlotID < .max else {
            throw StoreError(
                .misuse, "the keyring has given all numbers of slots",
                hint: "Make a copy of the store, which gets a keyring of its own.")
        }
        guard let index = places.firstIndex(of: .free) else {
            throw StoreError(
                .misuse, "the keyring has \(Self.placeCount) slots, which is the most",
                hint: "Remove a slot that nobody uses any more.")
        }
        try requireNew(prepared, except: nil)
        let slot = try slot(prepared, nextSlotID, made: now, now: now, under: root)
        try put(slot, at: index)
        nextSlotID += 1
        return slot
    }

    /// Gives a slot another credential. It keeps its number.
    ///
    /// - Throws: `.notFound` if there is no such slot; `.alreadyExists` if another one has the
    ///   credential.
    mutating func replace(
        _ id: UInt16, by prepared: borrowing PreparedSlot, under root: borrowing RootKey, now: Int64
    ) throws(StoreError) -> KeyringSlot {
        let (index, old) = try place(of: id)
        try requireNew(prepared, except: id)
        let slot = try slot(prepared, id, made: old.made, now: now, under: root)
        try put(slot, at: index)
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
    /// - Throws: `.notFound` if there is no such slot; `.lastSlot` if nothing would open the
    ///   keyring any more.
    mutating func remove(_ id: UInt16) throws(StoreError) {
        let (index, _) = try place(of: id)
        guard slots.count > 1 else {
            throw StoreError(
                .lastSlot, "slot \(id) is the only one: nothing would open the store without it",
                hint: "Add another slot first.")
        }
        places[index] = .free
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
    /// in.
    private func requireNew(
        _ prepared: borrowing PreparedSlot, except id: UInt16?
    ) throws(StoreError) {
        for slot in slots where slot.kind == prepared.kind && slot.id != id {
            guard try !has(slot, prepared) else {
                throw StoreError(
                    .alreadyExists, "slot \(slot.id) is for this credential already")
            }
        }
    }

    /// Whether the slot, of the same kind, is for the same credential. Of two passphrases with
    /// different salts or costs nobody can tell.
    private func has(
        _ slot: KeyringSlot, _ prepared: borrowing PreparedSlot
    ) throws(StoreError) -> Bool {
        if prepared.kind == .recipient { return slot.blob == prepared.blob }
        guard Derivation(of: slot) == prepared.derivation else { return false }
        return try slot.root(by: prepared.secret, id: id) != nil
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
