import CSQLCipher

/// Opens a file that may be a store, and reports what it is if it is not.
struct Opening {
    let file: FileLocation
    let mode: OpenMode
    let configuration: Configuration
    let role: PhysicalOpen.Role
    let cacheByteCount: Int
    /// Whether the file is read to be copied: then the older formats are opened as well.
    private let isSource: Bool
    let derived = DerivedKeys()

    init(
        path: String, mode: OpenMode, configuration: Configuration, cacheByteCount: Int
    ) throws(StoreError) {
        file = try FileLocation(path)
        self.mode = mode
        self.configuration = configuration
        self.cacheByteCount = cacheByteCount
        role = mode == .readOnly ? file.sourceRole : .writer
        isSource = false
    }

    /// Makes an opening of a file that is read to be copied: it opens older formats too, whatever
    /// the configuration's profile, and changes nothing.
    init(
        source: FileLocation, configuration: Configuration, cacheByteCount: Int
    ) {
        file = source
        mode = .mustExist
        var configuration = configuration
        configuration.profile = nil
        self.configuration = configuration
        self.cacheByteCount = cacheByteCount
        role = source.sourceRole
        isSource = true
    }

    /// Makes an opening of the same file with another key, in the profile that its keyring names.
    init(_ other: Opening, profile: CipherProfile) {
        file = other.file
        mode = .mustExist
        var configuration = other.configuration
        configuration.profile = profile
        self.configuration = configuration
        cacheByteCount = other.cacheByteCount
        role = other.role
        isSource = other.isSource
    }

    /// How long it took to derive the key from a passphrase, so far.
    var derivationDuration: Duration { derived.duration }

    /// Opens the file, or creates it if there is none and the mode is `.createIfMissing`.
    ///
    /// - Throws: As `Connection.setKey(_:)`. `.notFound` if there is no file and none is created.
    ///   `.needsUpgrade` for a format of SQLCipher 1 or 2, unless the file is read to be copied.
    ///   `.needsNewerEngine` for a profile of SQLCipher 4 on SQLCipher 3. `.misuse` if the
    ///   configured profile has another page size than the file. `.busy` if other files take its
    ///   path again and again.
    func open(key: borrowing StoreKey) throws(StoreError) -> OpenFile {
        try key.check()
        if let credential = key.credential(), let use = key.keyringUse {
            return try open(by: credential, use)
        }
        do throws(StoreError) {
            return try open(ownKey: key)
        } catch  where error.code == .wrongKey && KeyringFile(of: file).exists {
            throw error.with(
                hint: "The store has a keyring: open it with a credential of that (.keyring).")
        }
    }

    /// Opens or creates the file with a passphrase or a raw key.
    private func open(ownKey key: borrowing StoreKey) throws(StoreError) -> OpenFile {
        let capabilities = try Engine.capabilities
        if let profile = configuration.profile {
            try profile.requireOpenable()
            guard capabilities.supports(profile) else {
                throw needsNewerEngine(profile)
            }
        }
        if case .missing = try file.status() {
            guard mode == .createIfMissing else {
                throw StoreError(.notFound, "there is no file at \(file.path)")
            }
            guard !KeyringFile(of: file).exists else { throw keyringAlone }
            let profile = configuration.profile ?? capabilities.defaultProfile
            let creation = Creation(
                file: file, profile: profile, configuration: try configuration.resolved(.wal),
                derived: derived)
            try creation.run(key: key)
        }
        return try openFile(key: key)
    }

    /// Opens an existing file. Tries again if another file has taken its path meanwhile.
    func openFile(key: borrowing StoreKey) throws(StoreError) -> OpenFile {
        for _ in 1..<StoreError.replacementTryCount {
            do throws(StoreError) {
                return try openExisting(key: key)
            } catch  where error.isAboutReplacement {
                // Another salt, and maybe another profile.
                continue
            }
        }
        return try openExisting(key: key)
    }

    private func openExisting(key: borrowing StoreKey) throws(StoreError) -> OpenFile {
        // Checked before the file is opened, because opening a folder fails with an obscure error.
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        try file.judgeNames(configuration, isWriter: role == .writer)
        let handle = try openHandle()
        let salt = try readSalt(handle)
        let diagnosis = Diagnosis(
            file: file, handle: handle, salt: salt, derived: derived,
            profiles: profiles(try Engine.capabilities))
        var found = try matchingProfile(handle, key: key, salt: salt)
        if found == nil, let other = try diagnosis.otherPageSize(key: key) {
            guard configuration.profile == nil else {
                throw StoreError(
                    .misuse, "\(file.path) has pages of \(other.pageByteCount) bytes",
                    hint: "Configure a profile with that page size, or none.")
            }
            found = other
        }
        if found == nil, let older = try diagnosis.olderFormat(key: key) {
            guard isSource else { throw Diagnosis.needsUpgrade(older, file: file) }
            found = older
        }
        guard let profile = found else {
            return try openNextToWAL(key: key, salt: salt, diagnosis)
        }
        guard try Engine.capabilities.supports(profile) else { throw needsNewerEngine(profile) }
        try requireOwnJournal(profile)
        let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
        let opened = try physical(profile).prepared(handle, key: rawKey)
        return OpenFile(handle: opened, key: rawKey, file: file, profile: profile)
    }

    func openHandle() throws(StoreError) -> Handle {
        let handle: Handle
        do throws(StoreError) {
            handle = try Handle(path: file.path, flags: role.flags, vfs: configuration.vfs)
        } catch {
            try file.requireReadable()
            throw error
        }
        if role == .writer { try file.requireWritable(handle) }
        return handle
    }

    /// Refuses a journal or WAL next to the file whose page size differs from the profile's. It was
    /// never this file's, since a store's page size does not change. SQLCipher 3.4.1 crashes when
    /// it plays back a smaller one.
    ///
    /// - Throws: `.damaged` for such a journal or WAL.
    private func requireOwnJournal(_ profile: CipherProfile) throws(StoreError) {
        guard let pageByteCount = file.pendingPageByteCount(),
            pageByteCount != profile.pageByteCount
        else { return }
        throw StoreError(
            .damaged,
            "the journal or WAL next to \(file.path) has pages of \(pageByteCount) bytes, the file "
                + "itself of \(profile.pageByteCount)",
            hint:
                "It belongs to another file: move it away, and keep it until you know whose it is."
        )
    }

    /// The first of the profiles to try in which the MAC of page 1 fits; `nil` if it fits in none.
    /// Throws errors of reading page 1 and of deriving a key.
    ///
    /// No lock is held, so another process may be in the middle of writing the page: a page that
    /// fails is read again. While it is being written, a WAL or journal exists next to the file.
    private func matchingProfile(
        _ handle: Handle, key: borrowing StoreKey, salt: [UInt8]
    ) throws(StoreError) -> CipherProfile? {
        for _ in 0..<3 {
            for profile in profiles(try Engine.capabilities) {
                let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
                if try handle.authenticates(page: 1, key: rawKey, profile: profile) {
                    return profile
                }
            }
            if file.hasPendingChanges { break }
        }
        return nil
    }

    /// Opens a file whose page 1 fits no profile. If a WAL or journal exists, the newest page 1 may
    /// be there (after an interrupted key change or checkpoint), so the engine has to decide.
    ///
    /// - Throws: As `Diagnosis.error(key:)` returns, if neither the file nor its WAL or journal
    ///   opens; errors of `PhysicalOpen.open(key:)` other than `.wrongKey`.
    private func openNextToWAL(
        key: borrowing StoreKey, salt: [UInt8], _ diagnosis: Diagnosis
    ) throws(StoreError) -> OpenFile {
        guard file.hasPendingChanges else { throw try diagnosis.error(key: key) }
        // First: the connection that closes the file last, even with a wrong key, moves the WAL
        // into it.
        if let logged = file.pendingSalt(), logged != salt,
            let opened = try openPending(key: key, salt: logged)
        {
            return opened
        }
        if let opened = try openPending(key: key, salt: salt) { return opened }
        // The attempt may have played back a journal, and restored its salt.
        let again = try readSalt(diagnosis.handle)
        if again != salt, let opened = try openPending(key: key, salt: again) { return opened }
        throw try diagnosis.error(key: key)
    }

    /// Opens the file and its WAL or journal through the engine, in the first profile that works.
    ///
    /// - Returns: `nil` if the key opens them in no profile.
    /// - Throws: Errors of opening other than `.wrongKey`.
    private func openPending(
        key: borrowing StoreKey, salt: [UInt8]
    ) throws(StoreError) -> OpenFile? {
        let pageByteCount = file.pendingPageByteCount()
        for profile in profiles(try Engine.capabilities) {
            guard let profile = pending(profile, pageByteCount),
                try Engine.capabilities.supports(profile)
            else { continue }
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            do throws(StoreError) {
                let opened = try physical(profile).open(key: rawKey)
                return OpenFile(handle: opened, key: rawKey, file: file, profile: profile)
            } catch  where error.code == .wrongKey {
                continue
            }
        }
        return nil
    }

    /// The profile with the page size of the WAL or journal; `nil` if the configuration names a
    /// profile with another one. SQLCipher 3.4.1 crashes when it plays back a journal of another
    /// page size.
    private func pending(_ profile: CipherProfile, _ pageByteCount: Int?) -> CipherProfile? {
        guard let pageByteCount, pageByteCount != profile.pageByteCount else { return profile }
        return configuration.profile == nil ? profile.resized(to: pageByteCount) : nil
    }

    /// The salt, which is the first 16 bytes of the file, after the checks that need no key.
    ///
    /// - Throws: `.truncated` for an empty file; `.notAStore` for one of fewer than 512 bytes, or a
    ///   keyring; `.unsupported` for a plaintext header; `.notEncrypted` for a plaintext database.
    func readSalt(_ handle: Handle) throws(StoreError) -> [UInt8] {
        let countedByteCount = try handle.rawByteCount()
        // SQLite takes a file of one byte for an empty one.
        let byteCount = countedByteCount > 0 ? countedByteCount : file.companionByteCount("")
        guard byteCount > 0 else {
            throw StoreError(
                .truncated, "\(file.path) is empty",
                hint: "To make a new store, delete the file first; otherwise restore it.")
        }
        guard let start = try handle.rawBytes(at: 0, count: FirstBytes.count) else {
            throw StoreError(
                .notAStore,
                "\(file.path) has \(byteCount) byte\(byteCount == 1 ? "" : "s"): less than one "
                    + "page",
                hint: "It is not a store, or its end is missing: then restore it from a backup.")
        }
        guard !FirstBytes.hasPlaintextHeader(start) else {
            throw FirstBytes.plaintextHeader(of: file)
        }
        guard !start.starts(with: KeyringArea.magic) else { throw StoreError.isKeyring(file) }
        guard !FirstBytes.isPlaintext(start) else {
            throw StoreError(
                .notEncrypted, "\(file.path) is a plaintext SQLite database",
                hint: "No key opens it: copy it into a new store with Store.encrypt.")
        }
        return Array(start.prefix(RawKey.saltByteCount))
    }

    /// The profiles to try, in order: only the configured one, or else the engine's default first.
    /// A profile that the engine cannot read comes last, so that it is recognized.
    func profiles(_ capabilities: Engine.Capabilities) -> [CipherProfile] {
        if let profile = configuration.profile { return [profile] }
        return capabilities.cipherMajorVersion >= 4
            ? [.sqlcipher4, .portable, .sqlcipher3]
            : [.portable, .sqlcipher3, .sqlcipher4]
    }

    private func physical(_ profile: CipherProfile) -> PhysicalOpen {
        PhysicalOpen(
            file: file, profile: profile, configuration: configuration, role: role,
            cacheByteCount: cacheByteCount)
    }

    func needsNewerEngine(_ profile: CipherProfile) -> StoreError {
        StoreError(
            .needsNewerEngine, "\(file.path) is in the profile \(profile), which needs SQLCipher 4",
            hint: "Install SQLCipher 4 and build against it; .portable files work on both.")
    }
}

extension CipherProfile {
    /// Refuses a profile in which Coffer neither opens nor makes stores.
    ///
    /// - Throws: `.misuse` for a profile that is read only to be upgraded.
    func requireOpenable() throws(StoreError) {
        guard isOpenable else {
            throw StoreError(
                .misuse, "Coffer does not open or make stores in the profile \(self)",
                hint: "Copy the file into a new store with Store.upgrade, or `coffer upgrade`.")
        }
    }
}
