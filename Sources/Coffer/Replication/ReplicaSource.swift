/// The numbers of keys in a replica; `nil` for a store without a keyring.
package struct ReplicaEpochs: Sendable {
    /// Of the commit that is restored.
    let commit: UInt32?
    /// Of the last commit of the replica.
    let newest: UInt32?

    package init(commit: UInt32?, newest: UInt32?) {
        (self.commit, self.newest) = (commit, newest)
    }
}

/// A file and its key, as far as a replica needs them.
package struct ReplicaSource: Sendable {
    /// Of the file that is replicated, or is to be made.
    package let path: String
    /// The key and the profile of the file; with a keyring, of one of its epochs.
    let cipher: FileCipher
    private let origin: Origin

    /// The keys from which those of a replica are derived.
    private enum Origin: Sendable {
        /// The key of the file itself.
        case key
        /// The root of an open store's keyring, of which only the replica's secret is kept.
        case root(id: [UInt8], secret: KeyBox<SecretBytes>)
        /// The root of a replica's keyring.
        case keyring(KeyBox<UnlockedKeyring>)
    }

    /// The file of an open store.
    ///
    /// - Throws: `.misuse` if it has a keyring, and was opened by another key or does not keep its
    ///   root; `.busy` while the root is being replaced.
    init(_ file: StoreFile) throws(StoreError) {
        path = file.location.path
        let (cipher, keyring) = file.keyOfKeyring
        self.cipher = cipher
        guard let keyring else {
            guard !KeyringFile(of: file.location).exists else {
                throw StoreError(
                    .misuse, "\(path) has a keyring, and was not opened by it",
                    hint: "Open it by a credential of the keyring. No credential would open a "
                        + "replica under the raw key, and the next rotation would end it.")
            }
            origin = .key
            return
        }
        let root = try keyring.root()
        guard root.key.id(for: cipher.key.salt) == keyring.rootID else {
            throw StoreError(
                .busy, "the root key of \(path) is being replaced",
                hint: "Call replaceRootKey again, which finishes it.")
        }
        origin = .root(
            id: keyring.rootID,
            secret: KeyBox(root.key.bytes.replicaSecret(salt: cipher.key.salt)))
    }

    /// The file of a replica that is to be restored or looked at. A passphrase is derived.
    ///
    /// - Parameters:
    ///   - path: Of the file that is to be made; empty for none.
    ///   - key: Of the replica's file.
    ///   - salt: Of the replica's file.
    ///   - profile: Its profile, as `profileName` has it.
    ///   - pageByteCount: Bytes of its pages.
    /// - Throws: `.needsNewerEngine` for a profile of SQLCipher 4; `.unsupported` for an unknown
    ///   profile; `.keyringMissing` for a credential of a keyring.
    package init(
        path: String, key: borrowing StoreKey, salt: [UInt8], profile: String, pageByteCount: Int
    ) throws(StoreError) {
        let profile = try Self.profile(profile, pageByteCount)
        guard key.keyringUse == nil else {
            throw StoreError(
                .keyringMissing, "the replica is of a store without a keyring",
                hint: "Pass the passphrase or the raw key of the store.")
        }
        self.path = path
        cipher = FileCipher(
            key: try KeyDerivation.rawKey(from: key, salt: salt, profile: profile),
            profile: profile)
        origin = .key
    }

    /// The file of a replica with a keyring.
    ///
    /// - Parameters:
    ///   - keyring: One that the replica has.
    ///   - memoryMax: The most memory that a derivation may take, in bytes.
    /// - Throws: `.wrongKey` if no slot is for the key; `.keyringMismatch` for the keyring of
    ///   another store; `.keyringDamaged`; `.tooCostly`; as the other forms.
    package init(
        path: String, key: borrowing StoreKey, keyring: ReplicaKeyring, salt: [UInt8],
        profile: String, pageByteCount: Int, memoryMax: Int
    ) throws(StoreError) {
        let profile = try Self.profile(profile, pageByteCount)
        guard let credential = key.credential() else {
            throw StoreError(
                .wrongKey,
                "the key is not a credential, and the replica is of a store with a keyring",
                hint: "Pass a credential of the keyring (.keyring).")
        }
        let unlocked = try keyring.unlocked(by: credential, memoryMax: memoryMax)
        let content = unlocked.area.content
        guard content.id == salt else {
            throw StoreError(
                .keyringMismatch, "the keyring of the replica is another store's",
                hint: "Somebody has copied objects between remotes: name the right remote.")
        }
        self.path = path
        cipher = FileCipher(
            key: unlocked.root.dataKey(epoch: content.epoch, id: salt), profile: profile)
        origin = .keyring(KeyBox(unlocked))
    }

    private static func profile(
        _ name: String, _ pageByteCount: Int
    ) throws(StoreError) -> CipherProfile {
        let known = [CipherProfile.portable, .sqlcipher3, .sqlcipher4]
        for profile in known.compactMap({ $0.resized(to: pageByteCount) })
        where "\(profile)" == name {
            guard try Engine.capabilities.supports(profile) else {
                throw StoreError(
                    .needsNewerEngine, "the replica is of a file in the profile \(profile)",
                    hint: "Restore it with SQLCipher 4.")
            }
            return profile
        }
        throw StoreError(.unsupported, "the replica is of a file in the profile \(name)")
    }

    /// The salt of the file: 16 bytes, not secret.
    package var salt: [UInt8] { cipher.key.salt }

    package var profileName: String { "\(cipher.profile)" }

    package var pageByteCount: Int { cipher.profile.pageByteCount }

    /// The tag of a page, from its bytes as they are in the file; `nil` if they are not so many.
    package func tag(of page: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard page.count == pageByteCount else { return nil }
        return page.dropFirst(cipher.profile.macOffset).prefix(PageSnapshot.tagByteCount)
    }

    /// Whether the keys of the file come from a keyring.
    package var hasKeyring: Bool { if case .key = origin { false } else { true } }

    /// The secret from which all keys of a replica are derived.
    package func secret() -> SecretBytes {
        switch origin {
        case .key: cipher.key.bytes.replicaSecret(salt: salt)
        case .root(_, let secret): secret.key.copy()
        case .keyring(let unlocked): unlocked.key.root.bytes.replicaSecret(salt: salt)
        }
    }

    // MARK: Open stores

    /// The key that the pages of a transaction are under.
    enum PageKey {
        /// That of the source; `nil` for the epoch of a file without a keyring.
        case own(epoch: UInt32?)
        /// The key has changed since the transaction began.
        case former
    }

    /// The key of an open file.
    ///
    /// - Throws: `.wrongKey` if the store has got another key, or another root, since the
    ///   replication began.
    func pageKey(_ open: OpenFile, of file: StoreFile?) throws(StoreError) -> PageKey {
        guard let file, open.profile == cipher.profile else { throw otherKey }
        let (current, keyring) = file.keyOfKeyring
        switch (origin, keyring) {
        case (.key, nil) where open.key.isEqual(to: cipher.key): return .own(epoch: nil)
        case (.root(let id, _), let keyring?) where keyring.rootID == id:
            return open.key.isEqual(to: current.key) ? .own(epoch: keyring.epoch) : .former
        default: throw otherKey
        }
    }

    /// The newest keyring of an open store, if it has the root of the source.
    ///
    /// - Throws: `.wrongKey` for another root; `.tooManyFiles`, `.needsNewerProgram` if it cannot
    ///   be read.
    func newestKeyring(of file: StoreFile?) throws(StoreError) -> ReplicaKeyring? {
        guard case .root(let id, _) = origin else { return nil }
        guard let keyring = file?.keyring else { throw otherKey }
        let area = try keyring.newest()
        guard area.content.rootID == id else { throw otherKey }
        return ReplicaKeyring(area: area)
    }

    private var otherKey: StoreError {
        StoreError(
            .wrongKey, "\(path) has another key than when its replica began",
            hint: "Give the store a new remote. The replica stays, under the old key.")
    }

    // MARK: Restored files

    /// Whether a rotation came after a commit.
    package func wasRotated(since epochs: ReplicaEpochs) -> Bool {
        guard case .keyring(let unlocked) = origin, let epoch = epochs.commit else { return false }
        return max(unlocked.key.area.content.highestEpoch, epochs.newest ?? 0) > epoch
    }

    /// The key of a restored file, and the keyring that it gets.
    ///
    /// - Throws: `.damaged` if an epoch is missing, or there is one for a file without
    ///   epochs; `.needsNewerProgram` if a later version has written the keyring, and its epoch is
    ///   another one.
    func copyKey(_ epochs: ReplicaEpochs) throws(StoreError) -> CopyKey {
        let epoch = epochs.commit
        guard case .keyring(let unlocked) = origin else {
            guard epoch == nil else { throw Self.otherEpoch }
            return CopyKey(cipher, nil)
        }
        guard let epoch, (1...KeyringContent.maximumEpoch).contains(epoch) else {
            throw Self.otherEpoch
        }
        let root = unlocked.key.root.copy()
        var content = unlocked.key.area.content
        // The last commit may be of a rotation that came after the keyring.
        let highest = max(content.highestEpoch, epochs.newest ?? 0, epoch)
        let isAsStored =
            content.epoch == epoch && content.highestEpoch == highest
            && content.state == .isInUse && !content.hasFormerRoot
        guard !isAsStored else { return CopyKey(cipher, unlocked.key.area) }
        if content.epoch != epoch {
            // When the key of an earlier epoch was made is not known: not before the root.
            content.name(epoch, under: root, now: content.rootMade)
        }
        content.highestEpoch = highest
        content.state = .isInUse
        content.forgetFormerRoot()
        content.generation += 1
        let key = FileCipher(
            key: root.dataKey(epoch: epoch, id: content.id), profile: cipher.profile)
        return CopyKey(key, try KeyringArea(content, under: root))
    }

    private static var otherEpoch: StoreError {
        StoreError(
            .damaged, "a commit of the replica does not say which key its pages have",
            hint: "Restore another moment.")
    }
}

extension SecretBytes {
    /// The secret from which all keys of a replica are derived: 32 bytes. These bytes are the key
    /// of the file, or the root of its keyring.
    fileprivate borrowing func replicaSecret(salt: [UInt8]) -> SecretBytes {
        expanded(Array("coffer1 replica".utf8) + salt)
    }
}
