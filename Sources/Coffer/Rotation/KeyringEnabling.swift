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

    /// Properties of the store, read with its former key.
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
            guard error.code == .wrongKey else { throw error }
            // An earlier call may have changed the key.
            return try finish(by: credential, unless: error)
        }
        try requireAlone(facts)
        var keyring = KeyringFile(of: facts.file)
        if let willStep = configuration.keyringWillStep { keyring.willStep = willStep }
        try requireUnused(keyring, facts)
        let (root, area) = try newKeyring(facts, credential, label, askBack)
        let lock = try place(area, as: keyring, facts, former: key)
        defer { withExtendedLifetime(lock) {} }
        return try change(facts, from: key, to: root, area, by: credential, in: keyring)
    }

    // MARK: Before

    func look(_ key: borrowing StoreKey) throws(StoreError) -> Facts {
        let store = try open(with: key)
        do throws(StoreError) {
            let file = try store.core.pool.requireFile("it has no keyring")
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
    private func requireUnused(_ keyring: KeyringFile, _ facts: Facts) throws(StoreError) {
        guard let content = try keyring.areas()?.current.first?.content,
            content.state != .isBeingEnabled || content.id != facts.id
        else { return }
        let isOther = content.id != facts.id
        throw StoreError(
            .alreadyExists,
            "\(keyring.location.path) exists" + (isOther ? ", and is another store's" : ""),
            hint: isOther
                ? "Move it away, or put the store back that it belongs to."
                : "Another process may have made it just now: call again. If it is of another time "
                    + "and the former key still opens the store, move it away.")
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
    /// - Throws: `.busy` if another process gives the store a keyring; `.alreadyExists` if it has
    ///   done so.
    private func place(
        _ area: KeyringArea, as keyring: KeyringFile, _ facts: Facts,
        former key: borrowing StoreKey
    ) throws(StoreError) -> KeyringByteLock {
        do throws(StoreError) {
            if try !keyring.make(area) {
                let lock = try KeyringByteLock(
                    keyring, .rotates, timeout: configuration.busyTimeout)
                // Only while the former key opens the file, the other keyring opens nothing.
                _ = try look(key)
                try requireUnused(keyring, facts)
                let old = try keyring.replace(timeout: configuration.waitTimeout, with: { area })
                if let old { unlinkIfPresent(old) }
                lock.release()
            }
            return try KeyringByteLock(keyring, .rotates, timeout: configuration.busyTimeout)
        } catch {
            switch error.code {
            case .wrongKey:
                throw StoreError(
                    .alreadyExists, "another process has given \(path) a keyring meanwhile",
                    hint: "Open the store by the credential that it has made.")
            case .keyringMissing: throw isBusy
            default: throw error
            }
        }
    }

    private var isBusy: StoreError {
        StoreError(
            .busy, "another process is giving \(path) a keyring",
            hint: "Try again when it has ended.")
    }

    // MARK: The change

    /// Changes the key. Only for the holder of the lock of rotations.
    func change(
        _ facts: Facts, from key: borrowing StoreKey, to root: KeyBox<RootKey>,
        _ area: KeyringArea, by credential: borrowing KeyCredential, in keyring: KeyringFile
    ) throws -> KeyringEnablingReport {
        let store: Store
        do {
            try requireOpens(credential, keyring, root.key, facts)
            try requireAlone(facts)
            store = try open(with: key)
        } catch {
            // No page was encrypted under the new root yet.
            giveUp(keyring, root.key)
            throw error
        }
        // An error of closing is ignored: the change is durable by then.
        defer { try? store.core.close() }
        let changed: RekeyReport
        do throws(RekeyFailure) {
            try RekeyFailure.wrapping { () throws(StoreError) in
                // Somebody may have moved it away since.
                guard isOwn(keyring, root.key) else { throw isBusy }
            }
            changed = try store.core.rekey(
                to: root.key.dataKey(epoch: 1, id: facts.id).storeKey(), .keep)
        } catch {
            if error.key == .old { giveUp(keyring, root.key) }
            throw error.error
        }
        try markInUse(keyring, root.key, area)
        return KeyringEnablingReport(isChanged: true, rekey: try finished(changed, store))
    }

    /// Checks that the keyring on the disk is this one, and opens.
    private func requireOpens(
        _ credential: borrowing KeyCredential, _ keyring: KeyringFile,
        _ root: borrowing RootKey, _ facts: Facts
    ) throws(StoreError) {
        do throws(StoreError) {
            let unlocked = try keyring.unlocked(
                by: credential, memoryMax: configuration.maximumKeyMemoryByteCount)
            guard let unlocked, unlocked.area.content.rootID == root.id(for: facts.id) else {
                throw isBusy
            }
        } catch {
            throw error.code == .wrongKey ? isBusy : error
        }
    }

    /// Whether the keyring at the path has this root.
    private func isOwn(_ keyring: KeyringFile, _ root: borrowing RootKey) -> Bool {
        guard let areas = try? keyring.areas() else { return false }
        return areas.authentic(under: root) != nil
    }

    /// Takes the keyring away again: it opens nothing, and would only be in the way.
    private func giveUp(_ keyring: KeyringFile, _ root: borrowing RootKey) {
        if isOwn(keyring, root) { unlinkIfPresent(keyring.location.path) }
    }

    /// Says in the keyring that it is in use. If that fails the next opening says it, but the
    /// keyring must be there: nothing else has the root.
    ///
    /// - Throws: The error of writing the keyring again, if somebody has taken it away.
    private func markInUse(
        _ keyring: KeyringFile, _ root: borrowing RootKey, _ area: KeyringArea
    ) throws(StoreError) {
        do throws(StoreError) {
            try KeyringLock(keyring, timeout: configuration.waitTimeout).change(under: root) {
                $0.state = .isInUse
            }
        } catch {
            configuration.logger?.warning(
                "the keyring could not be brought up to date",
                metadata: ["path": "\(path)", "code": "\(error.code)"])
            guard !isOwn(keyring, root) else { return }
            _ = try keyring.replace(timeout: configuration.waitTimeout, with: { area })
        }
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

    /// Finishes an earlier call, if the credential opens the store.
    ///
    /// - Parameter refusal: The error of the former key.
    private func finish(
        by credential: borrowing KeyCredential, unless refusal: StoreError
    ) throws(StoreError) -> KeyringEnablingReport {
        let store: Store
        do throws(StoreError) {
            store = try open(with: .keyring(credential.copy()))
        } catch {
            switch error.code {
            case .keyringMissing: throw refusal
            case .wrongKey: throw refusal.adding("and neither does the new credential")
            default: throw error
            }
        }
        defer { try? store.core.close() }
        return KeyringEnablingReport(isChanged: false, rekey: try store.core.finishRekey())
    }
}
