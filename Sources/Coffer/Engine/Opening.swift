import CSQLCipher

/// An open, proven connection with what is needed to open another one.
struct Opened: ~Copyable {
    let handle: Handle
    let key: RawKey
    let file: FileLocation
    let profile: CipherProfile
}

/// Opens a file that may be a store, and says what it is if it is not.
struct Opening {
    let file: FileLocation
    let mode: OpenMode
    let configuration: Configuration
    let role: PhysicalOpen.Role
    let cacheByteCount: Int
    private let derived = DerivedKeys()

    init(
        path: String, mode: OpenMode, configuration: Configuration, cacheByteCount: Int
    ) throws(StoreError) {
        file = try FileLocation(path)
        self.mode = mode
        self.configuration = configuration
        self.cacheByteCount = cacheByteCount
        role = mode == .readOnly ? .readOnly : .writer
    }

    /// Opens the file, or creates it where the mode says so.
    func open(key: borrowing StoreKey) throws(StoreError) -> Opened {
        try key.check()
        let capabilities = try Engine.capabilities
        if let profile = configuration.profile, !capabilities.supports(profile) {
            throw Self.needsNewerEngine(profile, file: file)
        }
        if case .missing = try file.status() {
            guard mode == .createIfMissing else {
                throw StoreError(.notFound, "there is no file at \(file.path)")
            }
            let profile = configuration.profile ?? capabilities.defaultProfile
            let creation = Creation(
                file: file, profile: profile, configuration: try configuration.resolved(.wal),
                derived: derived)
            try creation.run(key: key)
        }
        return try openExisting(key: key)
    }

    private func openExisting(key: borrowing StoreKey) throws(StoreError) -> Opened {
        // Asked before the file is opened, whose descriptor a folder would refuse obscurely.
        guard case .file = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        let handle = try Handle(path: file.path, flags: role.flags)
        let salt = try readSalt(handle)
        guard let profile = try matchingProfile(handle, key: key, salt: salt) else {
            return try openBesideLog(key: key, salt: salt, unopened: handle)
        }
        guard try Engine.capabilities.supports(profile) else {
            throw Self.needsNewerEngine(profile, file: file)
        }
        let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
        try physical(profile).prepare(handle, key: rawKey)
        return Opened(handle: handle, key: rawKey, file: file, profile: profile)
    }

    /// The profile under which page 1 authenticates.
    ///
    /// No lock is held, so another process may be half-way through writing the page: a page that
    /// fails is read again. While it is being written, a log or journal stands beside the file.
    private func matchingProfile(
        _ handle: Handle, key: borrowing StoreKey, salt: [UInt8]
    ) throws(StoreError) -> CipherProfile? {
        for _ in 0..<3 {
            for profile in profiles(try Engine.capabilities) {
                let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
                if try authenticates(page: 1, of: handle, key: rawKey, profile: profile) {
                    return profile
                }
            }
            if file.hasPendingChanges { break }
        }
        return nil
    }

    /// Page 1 does not authenticate. With a log or hot journal beside the file the newest page 1
    /// may stand there (a key change that was cut short), so the engine has to say.
    private func openBesideLog(
        key: borrowing StoreKey, salt: [UInt8], unopened handle: Handle
    ) throws(StoreError) -> Opened {
        guard file.hasPendingChanges else { throw try diagnosis(handle, key: key, salt: salt) }
        // SQLCipher 3.4.1 crashes when it plays back a journal of another page size.
        let pageByteCount = file.pendingPageByteCount()
        for profile in profiles(try Engine.capabilities) {
            guard try Engine.capabilities.supports(profile),
                pageByteCount == nil || pageByteCount == profile.pageByteCount
            else { continue }
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            do throws(StoreError) {
                let opened = try physical(profile).open(key: rawKey)
                return Opened(handle: opened, key: rawKey, file: file, profile: profile)
            } catch  where error.code == .wrongKey {
                continue
            }
        }
        throw try diagnosis(handle, key: key, salt: salt)
    }

    /// Reads the salt, after the checks that need no key.
    private func readSalt(_ handle: Handle) throws(StoreError) -> [UInt8] {
        let byteCount = try handle.rawByteCount()
        guard byteCount > 0 else {
            throw StoreError(
                .truncated, "\(file.path) is empty",
                hint: "If it should be a new store, delete the file first; else restore it.")
        }
        guard let salt = try handle.rawBytes(at: 0, count: RawKey.saltByteCount), byteCount >= 512
        else {
            throw StoreError(
                .notAStore, "\(file.path) has \(byteCount) bytes: less than one page")
        }
        guard !FirstBytes.isPlaintext(salt) else {
            throw StoreError(
                .notEncrypted, "\(file.path) is a plaintext SQLite database",
                hint: "No key opens it: copy its content into a new store to encrypt it.")
        }
        return salt
    }

    /// The profiles to try, in order: the named one only, else the engine's default first. A
    /// profile that the engine cannot read comes last, to be recognised.
    private func profiles(_ capabilities: Engine.Capabilities) -> [CipherProfile] {
        if let profile = configuration.profile { return [profile] }
        return capabilities.cipherMajorVersion >= 4
            ? [.sqlcipher4, .portable, .sqlcipher3]
            : [.portable, .sqlcipher3, .sqlcipher4]
    }

    private func authenticates(
        page number: Int, of handle: Handle, key: borrowing RawKey, profile: CipherProfile
    ) throws(StoreError) -> Bool {
        let size = profile.pageByteCount
        guard let page = try handle.rawBytes(at: (number - 1) * size, count: size) else {
            return false
        }
        let authenticator = PageAuthenticator(key: key, profile: profile)
        return page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
    }

    /// Why the key did not open the file: page 2 decides between a wrong key and a bad page 1.
    private func diagnosis(
        _ handle: Handle, key: borrowing StoreKey, salt: [UInt8]
    ) throws(StoreError) -> StoreError {
        for profile in profiles(try Engine.capabilities) {
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            if try authenticates(page: 2, of: handle, key: rawKey, profile: profile) {
                return StoreError(
                    .damaged, "the key is right, but the first page of \(file.path) is damaged",
                    hint: "Restore the file from a backup.", pages: [1])
            }
        }
        if let start = try handle.rawBytes(at: 0, count: 512), FirstBytes.isText(start) {
            return StoreError(.notAStore, "\(file.path) is a text file")
        }
        return StoreError(
            .wrongKey, "the key does not open \(file.path)",
            hint: "Check the key. A file that is no store at all looks the same to any key.")
    }

    private func physical(_ profile: CipherProfile) -> PhysicalOpen {
        PhysicalOpen(
            file: file, profile: profile, configuration: configuration, role: role,
            cacheByteCount: cacheByteCount)
    }

    private static func needsNewerEngine(_ profile: CipherProfile, file: FileLocation) -> StoreError
    {
        StoreError(
            .needsNewerEngine, "\(file.path) is in the profile \(profile), which needs SQLCipher 4",
            hint: "Install SQLCipher 4 and build against it; .portable files work on both.")
    }
}
