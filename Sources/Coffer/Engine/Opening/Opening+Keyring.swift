/// A file with a keyring, open under a key of its root.
struct OpenedEpoch {
    let file: OpenFile
    let epoch: UInt32
    /// The id of the root that the key comes from.
    let rootID: [UInt8]
    /// Whether that is the root before the keyring's present one.
    var isUnderFormerRoot = false
}

/// Opening a store with a credential of its keyring: see `Documentation/design/keyring.md`.
extension Opening {
    /// Opens the file with the key that its keyring gives to a credential. Makes both files if
    /// neither exists and the mode is `.createIfMissing`.
    ///
    /// - Throws: `.keyringMissing`; `.keyringDamaged`; `.keyringMismatch` if no key of the keyring
    ///   is the file's; `.wrongKey` if no slot is for the credential; `.tooCostly`; `.olderFile`
    ///   for a file older than the keyring says, unless that is accepted; `.notFound` if the
    ///   database is gone; otherwise as `open(key:)`.
    func open(
        by credential: borrowing KeyCredential, _ use: StoreKey.KeyringUse
    ) throws(StoreError) -> OpenFile {
        var keyring = KeyringFile(of: file)
        if let willStep = configuration.keyringWillStep { keyring.willStep = willStep }
        var unlocked = try unlocked(keyring, by: credential)
        var content = unlocked.area.content
        if let profile = configuration.profile, profile != content.profile {
            throw StoreError(
                .misuse, "the keyring says that \(file.path) is in the profile \(content.profile)",
                hint: "Configure that profile, or none.")
        }
        guard try Engine.capabilities.supports(content.profile) else {
            throw needsNewerEngine(content.profile)
        }
        let isNew = try createIfNeeded(unlocked)
        let found: OpenedEpoch
        do throws(StoreError) {
            found = try openAnyEpoch(of: content, unlocked.root)
        } catch {
            // Another process may have replaced the root since the keyring was read.
            guard let next = Self.next(after: unlocked, in: keyring) else { throw error }
            unlocked = next
            content = unlocked.area.content
            found = try openAnyEpoch(of: content, unlocked.root)
        }
        let (opened, epoch) = (found.file, found.epoch)
        let newest = found.isUnderFormerRoot ? content.formerEpoch : content.epoch
        guard epoch >= newest || use.acceptsOlderFile else {
            opened.handle.close()
            throw StoreError(
                .olderFile,
                "\(file.path) has the key of epoch \(epoch), and its keyring is at epoch "
                    + "\(newest): the file is an older copy",
                hint: "Open it with acceptsOlderFile if it was put back on purpose.")
        }
        let open = OpenKeyring(
            keyring, unlocked, epoch: epoch, rootID: found.rootID, configuration)
        if found.isUnderFormerRoot {
            configuration.logger?.notice(
                "the replacement of the root key has not ended", metadata: ["path": "\(file.path)"])
        } else {
            try record(in: open, after: content, mustSucceed: isNew)
        }
        if !use.keepsRoot { open.forgetRoot() }
        return OpenFile(
            handle: opened.handle, key: opened.key.copy(), file: file, profile: opened.profile,
            keyring: open)
    }

    /// The keyring under another root than before, opened by the secret of the same slot; `nil` if
    /// it has the same root, or another slot.
    private static func next(
        after unlocked: borrowing UnlockedKeyring, in keyring: KeyringFile
    ) -> UnlockedKeyring? {
        guard let areas = try? keyring.areas(), areas.authentic(under: unlocked.root) == nil else {
            return nil
        }
        for area in areas.current {
            if let next = try? area.unlocked(by: unlocked.secret) { return next }
        }
        return nil
    }

    /// The error for a keyring without its database. Making a new store would hide the loss.
    var keyringAlone: StoreError {
        StoreError(
            .notFound, "there is no file at \(file.path), but there is its keyring",
            hint: "Put the file back from a backup. For a new store, move the keyring away.")
    }

    // MARK: The keyring

    private func unlocked(
        _ keyring: KeyringFile, by credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring {
        let start = ContinuousClock.now
        defer { derived.add(start.duration(to: .now)) }
        if let unlocked = try existing(keyring, by: credential) { return unlocked }
        guard case .missing = try file.status() else {
            let error = StoreError.noKeyring(keyring)
            guard error.code == .keyringMissing else { throw error }
            throw error.with(
                hint: "Put it back from a backup, or rebuild it from a root backup. A store "
                    + "that never had one is opened with its passphrase or raw key.")
        }
        guard mode == .createIfMissing else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        try NewFile.requireNoPendingChanges(file)
        let new = try newKeyring(for: credential)
        if try keyring.make(new.area) { return new }
        // Another creator was faster.
        guard let made = try existing(keyring, by: credential) else {
            throw StoreError.noKeyring(keyring)
        }
        return made
    }

    /// Reads the keyring and unwraps its root, if the file exists.
    ///
    /// - Returns: `nil` if the store has no keyring.
    /// - Throws: `.alreadyExists` if the credential is a recipient's and the store was never made:
    ///   anybody could have sealed that root to the public key. Otherwise as
    ///   `KeyringFile.unlocked`.
    private func existing(
        _ keyring: KeyringFile, by credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring? {
        guard let unlocked = try unlock(keyring, by: credential) else { return nil }
        let content = unlocked.area.content
        if case .missing = try file.status(), content.state == .isBeingCreated,
            try content.slot(unlocked.slotID).kind == .recipient
        {
            throw StoreError(
                .alreadyExists,
                "\(keyring.location.path) is the keyring of a store that was never made",
                hint: "Move it away, and make the store again. Everybody can make a keyring for "
                    + "a public key, and would know its root.")
        }
        return unlocked
    }

    /// Reads a keyring, or a copy of one, and unwraps its root.
    ///
    /// - Returns: `nil` if the keyring does not exist.
    /// - Throws: `.keyringMismatch` if no slot is for the credential, and the keyring is perhaps
    ///   another file's; otherwise as `KeyringFile.unlocked`.
    func unlock(
        _ keyring: KeyringFile, by credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring? {
        do throws(StoreError) {
            return try keyring.unlocked(
                by: credential, memoryMax: configuration.maximumKeyMemoryByteCount)
        } catch  where error.code == .wrongKey {
            throw otherFile(keyring, error)
        }
    }

    /// The error for a credential without a slot. If the file has another salt than the keyring,
    /// the keyring is perhaps another file's, and its slots say nothing about the credential.
    ///
    /// After a crash the first page is final only without a WAL and a journal.
    private func otherFile(_ keyring: KeyringFile, _ refusal: StoreError) -> StoreError {
        if (try? keyring.areas())?.current.first?.content.state == .isBeingEnabled {
            return refusal.with(hint: Self.enabling)
        }
        guard case .file? = try? file.status(), file.companionByteCount("-wal") == 0,
            !file.hasJournal, let handle = try? openHandle()
        else { return refusal }
        defer { handle.close() }
        guard let salt = try? readSalt(handle),
            let id = (try? keyring.areas())?.current.first?.content.id, id != salt
        else { return refusal }
        return StoreError(
            .keyringMismatch,
            "no slot of the keyring is for this credential, and \(file.path) does not begin as the "
                + "file of the keyring: the keyring is that of another file, or the first page is "
                + "damaged",
            hint: "Put the file and the keyring back that belong together, or try another "
                + "credential.", cause: refusal)
    }

    /// The hint while `enableKeyring` has made the keyring, but has not changed the file's key yet.
    private static let enabling =
        "A call of enableKeyring has begun and not ended: until it changes the key of the file, "
        + "the key from before opens it, and the same call again finishes."

    private func mismatch(
        _ content: KeyringContent, isOtherFile: Bool, cause: StoreError
    ) -> StoreError {
        StoreError(
            .keyringMismatch,
            "no key of the keyring opens \(file.path)"
                + (isOtherFile ? ": the keyring is that of another file" : ""),
            hint: content.state == .isBeingEnabled && !isOtherFile
                ? Self.enabling
                : "Put the file and the keyring back that belong together. With a root backup the "
                    + "keyring can be rebuilt.", cause: cause)
    }

    private func newKeyring(
        for credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring {
        let capabilities = try Engine.capabilities
        let profile = configuration.profile ?? capabilities.defaultProfile
        try profile.requireOpenable()
        guard capabilities.supports(profile) else { throw needsNewerEngine(profile) }
        return try .new(
            for: credential, profile: profile, state: .isBeingCreated, configuration)
    }

    // MARK: The file

    /// Makes the database of a new keyring.
    ///
    /// - Returns: Whether it made the database.
    /// - Throws: `.notFound` if the database existed once and is missing.
    private func createIfNeeded(
        _ unlocked: borrowing UnlockedKeyring
    ) throws(StoreError) -> Bool {
        guard case .missing = try file.status() else { return false }
        let content = unlocked.area.content
        guard mode == .createIfMissing, content.state == .isBeingCreated else { throw keyringAlone }
        let creation = Creation(
            file: file, profile: content.profile, configuration: try configuration.resolved(.wal),
            derived: DerivedKeys())
        try creation.run(
            key: unlocked.root.dataKey(epoch: content.epoch, id: content.id).storeKey())
        return true
    }

    /// Opens the file in the epoch of the keyring, or in the one that the file, its WAL and its
    /// journal show.
    ///
    /// Another process may rotate the key, or move the pages of a rotation out of the WAL. So the
    /// file is looked at again while the lock of rotations is held, and a few times if it shows
    /// keys of the root that do not open it. While somebody rotates, only the likely epochs are
    /// tried, but for the last time: the others take seconds, and the file changes meanwhile.
    ///
    /// - Parameters:
    ///   - searchesAll: Whether epochs are tried that only a wrong clock makes: some seconds.
    ///   - ownsLock: Whether the caller holds the lock of rotations, so that nobody else rotates.
    ///   - tried: Called with the number of epochs that were tried, after each 4 096.
    /// - Throws: `.keyringMismatch` if no key of the root is the file's; `.damaged`; `.busy`;
    ///   otherwise as opening the file.
    func openAnyEpoch(
        of content: KeyringContent, _ root: borrowing RootKey, searchesAll: Bool = false,
        ownsLock: Bool = false, tried: ((Int) -> Void)? = nil
    ) throws(StoreError) -> OpenedEpoch {
        let keyring = KeyringFile(of: file)
        var content = content
        let deadline = ContinuousClock.now + configuration.rotationTimeout
        var refusalCount = 0
        func isRotated() -> Bool { !ownsLock && KeyringByteLock.isHeld(.rotates, of: keyring) }
        while true {
            let wasRotated = isRotated()
            let isShort = wasRotated && refusalCount + 1 < Self.maximumRefusalCount
            let refusal: Refusal
            switch try openUnderAnyRoot(
                content, root, searchesAll: searchesAll, isShort: isShort, tried: tried)
            {
            case .success(let opened): return opened
            case .failure(let failure): refusal = failure
            }
            if refusal.error.code != .busy { refusalCount += 1 }
            let mayPass =
                wasRotated || isRotated()
                ? refusalCount < Self.maximumRefusalCount
                : refusal.showsOwnKeys && refusalCount < Self.calmRefusalCount
            guard mayPass, ContinuousClock.now < deadline else { throw refusal.error }
            sleepBriefly()
            if let newer = (try? keyring.areas())?.authentic(under: root)?.content {
                content = newer
            }
        }
    }

    /// How often a file may refuse all keys while somebody rotates, and while nobody does.
    private static let maximumRefusalCount = 100
    private static let calmRefusalCount = 5

    /// The file did not open under a key of the root.
    private struct Refusal: Error {
        let error: StoreError
        /// Whether a copy of page 1 is under a key of the root all the same.
        let showsOwnKeys: Bool
    }

    /// The errors of a key that is not the newest one of the file, or of a file whose first page
    /// gets another key meanwhile: page 1 is read several times, and a raw key fits the formats of
    /// SQLCipher 2 and 3 alike.
    private static let meansOtherEpoch: [StoreError.Code] = [
        .wrongKey, .damaged, .busy, .needsUpgrade,
    ]

    /// Opens the file as `openNow`, under the root or under the former one that the keyring has.
    /// The likely epochs of both come before the others.
    ///
    /// - Throws: Errors that say nothing about the key; `.keyringDamaged` if the former root does
    ///   not open.
    private func openUnderAnyRoot(
        _ content: KeyringContent, _ root: borrowing RootKey, searchesAll: Bool, isShort: Bool,
        tried: ((Int) -> Void)?
    ) throws(StoreError) -> Result<OpenedEpoch, Refusal> {
        guard let former = try content.formerRoot(under: root) else {
            return try openNow(
                content, root, searchesAll: searchesAll, isShort: isShort, tried: tried)
        }
        if !isShort {
            let likely = try openUnderAnyRoot(
                content, root, searchesAll: searchesAll, isShort: true, tried: tried)
            if case .success = likely { return likely }
        }
        let result = try openNow(
            content, root, searchesAll: searchesAll, isShort: isShort, tried: tried)
        guard case .failure(let refusal) = result else { return result }
        switch try openNow(
            content.underFormerRoot, former, searchesAll: searchesAll, isShort: isShort,
            tried: tried)
        {
        case .success(var opened):
            opened.isUnderFormerRoot = true
            return .success(opened)
        case .failure(let failure):
            // The file may show keys of one of both roots only.
            return .failure(failure.showsOwnKeys ? failure : refusal)
        }
    }

    /// Opens the file in the epoch of the keyring, or in one that the file shows now.
    ///
    /// - Parameter isShort: Whether only the likely epochs are tried.
    /// - Throws: Errors that say nothing about the key.
    private func openNow(
        _ content: KeyringContent, _ root: borrowing RootKey, searchesAll: Bool, isShort: Bool,
        tried: ((Int) -> Void)?
    ) throws(StoreError) -> Result<OpenedEpoch, Refusal> {
        var failure: StoreError
        do throws(StoreError) {
            return .success(try open(content, root, content.epoch))
        } catch  where Self.meansOtherEpoch.contains(error.code) {
            failure = error
        }
        guard failure.code != .busy else {
            return .failure(Refusal(error: failure, showsOwnKeys: false))
        }
        // The epochs of a rotation that was not recorded. Otherwise the whole WAL would be read.
        for epoch in EpochCandidates(
            of: content, hour: EpochCandidates.hour(of: configuration.secondsSince1970)
        ).newest {
            guard let opened = try? open(content, root, epoch) else { continue }
            return .success(opened)
        }
        let handle = try openHandle()
        let byteCount = content.profile.pageByteCount
        let evidence = KeyEvidence(
            of: file, main: try handle.rawBytes(at: 0, count: byteCount), content,
            seconds: configuration.secondsSince1970, searchesAll: searchesAll)
        let second = try handle.rawBytes(at: byteCount, count: byteCount)
        handle.close()
        // If the key fits another page, few epochs are worth a trial.
        let found = evidence.search(
            second, under: root, isShort: isShort || failure.code == .damaged, tried: tried)
        for epoch in found.epochs where epoch != content.epoch {
            do throws(StoreError) {
                return .success(try open(content, root, epoch))
            } catch  where Self.meansOtherEpoch.contains(error.code) {
                failure = error
            }
        }
        let showsOwnKeys = !found.epochs.isEmpty
        if failure.code != .wrongKey {
            return .failure(Refusal(error: failure, showsOwnKeys: showsOwnKeys))
        }
        guard !found.fitsSecond || showsOwnKeys else {
            let error = StoreError(
                .damaged, "the keyring is right, but the first page of \(file.path) is damaged",
                hint: "Restore the file from a backup.", pages: [1])
            return .failure(Refusal(error: error, showsOwnKeys: false))
        }
        let isOther = evidence.pages.last.map { !$0.starts(with: content.id) } ?? false
        return .failure(
            Refusal(
                error: mismatch(content, isOtherFile: isOther, cause: failure),
                showsOwnKeys: showsOwnKeys))
    }

    private func open(
        _ content: KeyringContent, _ root: borrowing RootKey, _ epoch: UInt32
    ) throws(StoreError) -> OpenedEpoch {
        let key = root.dataKey(epoch: epoch, id: content.id)
        return OpenedEpoch(
            file: try Opening(self, profile: content.profile).openFile(key: key.storeKey()),
            epoch: epoch, rootID: root.id(for: content.id))
    }

    // MARK: Recording

    /// Records the epoch of the file in the keyring, and marks the keyring as in use. Ends a
    /// replacement of the root if no page can be under the former one.
    ///
    /// Does nothing if another process has rotated the key since the opening.
    ///
    /// - Parameters:
    ///   - before: The content by which the file was opened.
    ///   - mustSucceed: Whether to throw a failure other than `.busy`. Any other failure is logged:
    ///     the next opening finds the epoch again.
    private func record(
        in keyring: OpenKeyring, after before: KeyringContent, mustSucceed: Bool
    ) throws(StoreError) {
        let (epoch, now) = (keyring.epoch, configuration.secondsSince1970)
        let isNew = before.epoch != epoch
        let endsReplacement =
            before.hasFormerRoot
            && file.companionByteCount("-wal") <= WriteAheadLog.headerByteCount
        guard role == .writer, isNew || endsReplacement || before.state != .isInUse else { return }
        do throws(StoreError) {
            try keyring.change(timeout: .zero) { (content, root) throws(StoreError) in
                guard (content.rootID, content.epoch) == (before.rootID, before.epoch) else {
                    return
                }
                content.state = .isInUse
                if endsReplacement { content.forgetFormerRoot() }
                if isNew { content.name(epoch, under: root, now: now) }
            }
            guard isNew else { return }
            configuration.logger?.notice(
                "the keyring did not have the epoch of the file",
                metadata: ["path": "\(file.path)", "epoch": "\(epoch)"])
        } catch {
            guard !mustSucceed || error.code == .busy else { throw error }
            configuration.logger?.warning(
                "the keyring could not be brought up to date",
                metadata: ["path": "\(file.path)", "code": "\(error.code)"])
        }
    }
}

extension UnlockedKeyring {
    /// Makes a new root, with one slot for the credential.
    ///
    /// - Parameters:
    ///   - id: The salt of the database; a random one for a new database.
    ///   - label: The name of the slot.
    /// - Throws: `.misuse` for an external secret or one of a wrong size; `.tooCostly`.
    /// - Complexity: For a passphrase one derivation, which blocks the thread.
    static func new(
        for credential: borrowing KeyCredential, id: [UInt8] = KeyDerivation.randomSalt(),
        label: String = "first", profile: CipherProfile, state: KeyringContent.State,
        _ configuration: Configuration
    ) throws(StoreError) -> UnlockedKeyring {
        let now = configuration.secondsSince1970
        let root = RootKey.random()
        var content = KeyringContent(
            new: root, id: id, profile: profile, state: state, now: now)
        let prepared = try PreparedSlot(
            NewSlot(for: credential), label: SlotLabel(label), cost: configuration.keyCost,
            memoryMax: configuration.maximumKeyMemoryByteCount, for: content)
        let slot = try content.add(prepared, under: root, now: now)
        let area = try KeyringArea(content, under: root)
        let secret =
            slot.kind == .recipient ? credential.secret.copy() : prepared.secret.copy()
        return UnlockedKeyring(
            area: area, root: root, slotID: slot.id,
            secret: SlotSecret(slot.kind, of: slot.id, secret))
    }
}
