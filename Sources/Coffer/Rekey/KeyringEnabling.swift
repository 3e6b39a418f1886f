/// Gives a store a keyring: one call of `enableKeyring`.
///
/// 1. The former key opens the store, and no other program has it open.
/// 2. The keyring is made. Its root is new, and it says that the file may be under the former key.
///    Its credential opens it from the disk.
/// 3. With the lock of rotations, the former key opens the file once more. Then the key of every
///    page becomes that of epoch 1, with the proof of every rekey.
/// 4. The keyring says that it is in use.
///
/// After a crash before 3 the former key opens the file, and the next call makes another keyring.
/// After a crash in or behind 3 one of both keys opens it, and the same call finishes.
struct KeyringEnabling {
    let path: String
    let configuration: Configuration
    let endsOtherPrograms: Bool

    /// What the former key has shown of the store.
    struct Facts {
        let file: FileLocation
        let id: [UInt8]
        let profile: CipherProfile
        let journalMode: Configuration.JournalMode
    }

    func run(
        from key: borrowing StoreKey, as credential: borrowing KeyCredential, label: String,
        recovery askBack: ((_ letters: UnsafeRawBufferPointer) throws -> [UInt8])?
    ) throws -> KeyringEnablingReport {
        guard key.credential() == nil else {
            throw StoreError(
                .misuse, "a credential is not a key that a store without a keyring has",
                hint: "Pass the passphrase or the raw key that opens the store now.")
        }
        let facts: Facts
        do throws(StoreError) {
            facts = try look(key)
        } catch {
            // An earlier call may have changed the key.
            guard error.code == .wrongKey, let report = try? finish(by: credential) else {
                throw error
            }
            return report
        }
        try requireAlone(facts)
        var keyring = KeyringFile(of: facts.file)
        if let willStep = configuration.keyringWillStep { keyring.willStep = willStep }
        try requireUnused(keyring)
        let (new, area) = try newKeyring(facts, credential, label, askBack)
        let lock = try place(area, as: keyring, former: key)
        defer { withExtendedLifetime(lock) {} }
        return try change(facts, from: key, to: new, by: credential, in: keyring)
    }

    // MARK: Before

    func look(_ key: borrowing StoreKey) throws(StoreError) -> Facts {
        let store = try open(with: key)
        do throws(StoreError) {
            guard let file = store.core.pool.file else {
                throw StoreError(.unsupported, "a store without a file has no keyring")
            }
            try file.location.requireOneName()
            let facts = Facts(
                file: file.location, id: file.cipher.key.salt, profile: file.cipher.profile,
                journalMode: store.core.pool.journalMode)
            try store.core.close()
            return facts
        } catch {
            try? store.core.close()
            throw error
        }
    }

    private func open(with key: borrowing StoreKey) throws(StoreError) -> Store {
        Store(
            core: try StoreCore(
                path: path, key: key, mode: .mustExist, configuration: configuration))
    }

    /// Refuses to end the access of other programs, which open the file with the former key.
    ///
    /// The last connection to a file in WAL mode removes the index of the WAL when it closes. So
    /// another one is open if the index is still there. Without WAL, nothing shows a connection
    /// that does not work.
    private func requireAlone(_ facts: Facts) throws(StoreError) {
        guard !endsOtherPrograms else { return }
        let hint =
            "A program that has it open would have to open it again, by the keyring. End it, or "
            + "pass endsOtherPrograms. Nothing was changed."
        guard facts.journalMode == .wal else {
            throw StoreError(
                .busy,
                "in the journal mode \(facts.journalMode) nothing shows whether another program "
                    + "has \(path) open", hint: hint)
        }
        guard facts.file.companionByteCount("-shm") == 0 else {
            throw StoreError(.busy, "another program has \(path) open", hint: hint)
        }
    }

    /// - Throws: `.alreadyExists` for a keyring that no unfinished call has made.
    private func requireUnused(_ keyring: KeyringFile) throws(StoreError) {
        guard let areas = try keyring.areas() else { return }
        guard areas.current[0].content.state == .isBeingEnabled else {
            throw StoreError(
                .alreadyExists,
                "\(keyring.location.path) exists, and the file is not under a key of it",
                hint: "Move it away if it is another store's.")
        }
    }

    private func newKeyring(
        _ facts: Facts, _ credential: borrowing KeyCredential, _ label: String,
        _ askBack: ((_ letters: UnsafeRawBufferPointer) throws -> [UInt8])?
    ) throws -> (root: KeyBox<RootKey>, area: KeyringArea) {
        let first = try UnlockedKeyring.new(
            for: credential, id: facts.id, label: label, profile: facts.profile,
            state: .isBeingEnabled, configuration)
        var content = first.area.content
        if let askBack {
            let new = NewSlot.recoveryKey()
            let prepared = try PreparedSlot(
                new, label: SlotLabel("recovery"), cost: .standard,
                memoryMax: configuration.maximumKeyMemoryByteCount, for: content)
            try KeyLetters.recoveryKey.requireBack(new.secret, askBack)
            _ = try content.add(
                prepared, under: first.root, now: configuration.secondsSince1970)
        }
        return (KeyBox(first.root.copy()), try KeyringArea(content, under: first.root))
    }

    // MARK: The keyring

    /// Makes the keyring, in the place of one that an unfinished call has left, and takes its lock.
    ///
    /// - Throws: `.busy` if another process enables a keyring at the same time; `.wrongKey` if it
    ///   has done so.
    private func place(
        _ area: KeyringArea, as keyring: KeyringFile, former key: borrowing StoreKey
    ) throws(StoreError) -> KeyringByteLock {
        if try !keyring.make(area) {
            // Only while the former key opens the file, the other keyring opens nothing.
            let lock = try KeyringByteLock(
                keyring, .rotates, timeout: configuration.busyTimeout)
            try requireUnused(keyring)
            _ = try look(key)
            if let old = try keyring.replace(timeout: configuration.waitTimeout, with: { area }) {
                unlinkIfPresent(old)
            }
            lock.release()
        }
        return try KeyringByteLock(keyring, .rotates, timeout: configuration.busyTimeout)
    }

    // MARK: The change

    /// Changes the key. Only for the holder of the lock of rotations.
    func change(
        _ facts: Facts, from key: borrowing StoreKey, to root: KeyBox<RootKey>,
        by credential: borrowing KeyCredential, in keyring: KeyringFile
    ) throws -> KeyringEnablingReport {
        // What is on the disk opens, and another process has not put its own keyring there.
        guard
            let unlocked = try keyring.unlocked(
                by: credential, memoryMax: configuration.maximumKeyMemoryByteCount),
            unlocked.area.content.rootID == root.key.id(for: facts.id),
            unlocked.area.content.state == .isBeingEnabled
        else {
            throw StoreError(
                .busy, "another process is giving \(path) a keyring",
                hint: "Try again when it has ended.")
        }
        let store = try open(with: key)
        // The change is durable by then, whatever closing says.
        defer { try? store.core.close() }
        let changed: RekeyReport
        do throws(RekeyFailure) {
            changed = try store.core.rekey(
                to: root.key.dataKey(epoch: 1, id: facts.id).storeKey(), .keep)
        } catch {
            try? store.core.close()
            // A keyring that opens nothing would only be in the way.
            if error.key == .old, (try? look(key)) != nil {
                unlinkIfPresent(keyring.location.path)
            }
            throw error.error
        }
        markInUse(keyring, root.key)
        return KeyringEnablingReport(isChanged: true, rekey: try finished(changed, store))
    }

    /// Moves the new pages from the WAL into the main file.
    ///
    /// - Throws: `.damaged` for pages that are not under the new key.
    private func finished(
        _ changed: RekeyReport, _ store: Store
    ) throws(StoreError) -> RekeyReport {
        do throws(StoreError) {
            return try store.core.finishRekey()
        } catch  where error.code != .damaged {
            return changed.failed(error)
        }
    }

    /// A failure costs nothing: the next opening does the same.
    private func markInUse(_ keyring: KeyringFile, _ root: borrowing RootKey) {
        do throws(StoreError) {
            try KeyringLock(keyring, timeout: configuration.waitTimeout).change(under: root) {
                $0.state = .isInUse
            }
        } catch {
            configuration.logger?.warning(
                "the keyring could not be brought up to date",
                metadata: ["path": "\(path)", "code": "\(error.code)"])
        }
    }

    /// Finishes an earlier call, if the credential opens the store.
    private func finish(
        by credential: borrowing KeyCredential
    ) throws(StoreError) -> KeyringEnablingReport {
        let store = try open(with: .keyring(credential.copy()))
        do throws(StoreError) {
            let report = try store.core.finishRekey()
            try store.core.close()
            return KeyringEnablingReport(isChanged: false, rekey: report)
        } catch {
            try? store.core.close()
            throw error
        }
    }
}
