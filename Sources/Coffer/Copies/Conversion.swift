/// One copy of a whole database into a new file: reads, writes, checks, then names the file.
///
/// If anything fails, the source is unchanged and nothing exists at the copy's path.
struct Conversion {
    let configuration: Configuration
    let monitor: CopyMonitor

    /// Copies a plaintext database into a new store.
    func encrypt(
        plaintextAt path: String, to newPath: String, key: borrowing StoreKey
    ) throws(StoreError) -> CopyReport {
        try key.check()
        let profile = try newProfile()
        let location = try CopyTarget.location(newPath)
        let file = try FileLocation(path)
        let source = try PlaintextFile.openSource(file, configuration)
        let target = try CopyTarget(
            at: location, of: file, key: CopyKey(new: key, profile: profile, configuration),
            configuration: configuration)
        try source.run(.begin)
        let content = try fill(target, from: source, cipher: nil)
        source.close()
        return try finish(target, content, profile: profile)
    }

    /// Copies an encrypted database of any supported format into a new store.
    func upgrade(
        from path: String, key: borrowing StoreKey, to newPath: String,
        newKey: borrowing StoreKey
    ) throws(StoreError) -> CopyReport {
        try newKey.check()
        let profile = try newProfile()
        let location = try CopyTarget.location(newPath)
        let opening = Opening(
            source: try FileLocation(path), configuration: configuration,
            cacheByteCount: CopyTarget.cacheByteCount)
        let source = try opening.open(key: key)
        let target = try CopyTarget(
            at: location, of: source.file,
            key: CopyKey(new: newKey, profile: profile, configuration),
            configuration: configuration)
        try source.handle.run(.begin)
        let content = try fill(
            target, from: source.handle,
            cipher: FileCipher(key: source.key.copy(), profile: source.profile))
        source.handle.close()
        return try finish(target, content, profile: profile)
    }

    /// Copies a store into a plaintext database, in a single read transaction.
    func decrypt(_ core: StoreCore, to newPath: String) throws -> CopyReport {
        try core.requireOutside()
        let location = try CopyTarget.location(newPath)
        let target = try CopyTarget(
            at: location, of: core.pool.file?.location, key: nil, configuration: configuration)
        let content = try core.read(cancellation: monitor.cancellation) { tx in
            let connection = try tx.connection()
            return try fill(
                target, from: connection.current(), cipher: core.pool.cipher(of: connection))
        }
        return try finish(target, content, profile: nil)
    }

    /// Copies a store page by page into a new file of the same profile, in one read transaction, so
    /// that the copy is the store at one moment. The report is that of the checked copy.
    ///
    /// - Parameter key: The key of the copy; `nil` for the store's own key.
    /// - Throws: `.alreadyExists` if there is something at `newPath`; `.misuse` inside a body of
    ///   the store, or for a store without a file and no key; `.damaged`, `.full`, `.io`,
    ///   `.cancelled`. After an error there is nothing at `newPath`.
    func backUp(
        _ core: StoreCore, to newPath: String, key: borrowing StoreKey?
    ) throws -> CopyReport {
        try core.requireOutside()
        let location = try CopyTarget.location(newPath)
        let profile = core.pool.profile
        var other: CopyKey?
        switch key {
        case .some(let key): other = try CopyKey(new: key, profile: profile, configuration)
        case .none: break
        }
        let newKey = other
        let target = try core.read(cancellation: monitor.cancellation) { tx in
            let connection = try tx.connection()
            let source = try connection.current()
            let file = core.pool.file
            let copyKey = try Self.copyKey(newKey, of: file)
            let target = CopyTargetBox(
                try CopyTarget(
                    at: location, of: file?.location, key: copyKey,
                    configuration: configuration))
            // Takes the snapshot.
            _ = try source.firstText(Probe.sql)
            let handle = try target.target.openEmpty()
            defer { handle.close() }
            try namingPages(of: source, core.pool.cipher(of: connection)) { () throws(StoreError) in
                try PageCopy(source: source, target: handle, monitor: monitor).run()
            }
            return target
        }
        return try finish(target.target, nil, profile: profile)
    }

    private static func copyKey(
        _ newKey: CopyKey?, of file: StoreFile?
    ) throws(StoreError) -> CopyKey {
        if let newKey { return newKey }
        guard let file else { throw noKey }
        return try CopyKey(of: file)
    }

    private static var noKey: StoreError {
        StoreError(
            .misuse, "the key of a store without a file is random, and nobody knows it",
            hint: "Give the copy a key of its own.")
    }

    // MARK: Steps

    private func newProfile() throws(StoreError) -> CipherProfile {
        let capabilities = try Engine.capabilities
        let profile = configuration.profile ?? capabilities.defaultProfile
        try profile.requireOpenable()
        guard capabilities.supports(profile) else {
            throw StoreError(
                .needsNewerEngine, "the profile \(profile) needs SQLCipher 4",
                hint: "Install SQLCipher 4 and build against it; .portable files work on both.")
        }
        return profile
    }

    /// - Parameter source: In a read transaction.
    private func fill(
        _ target: borrowing CopyTarget, from source: Handle, cipher: FileCipher?
    ) throws(StoreError) -> DatabaseCopy.Content {
        // SQLite may recompile the row statements while they run, so keep Coffer's rights in force.
        let wasCoffer = source.authorizer.isCoffer
        source.authorizer.isCoffer = true
        defer { source.authorizer.isCoffer = wasCoffer }
        let handle = try target.openEmpty()
        defer { handle.close() }
        let content = try namingPages(of: source, cipher) { () throws(StoreError) in
            try DatabaseCopy(source: source, target: handle, monitor: monitor).run()
        }
        // Pages without a MAC can only be checked by their structure. This check comes last,
        // because the copy gives a better error for an index that this process cannot read.
        if cipher == nil || cipher?.profile.pageMAC == CipherProfile.PageMAC.none {
            try CopyCheck.requireSound(source, "the source")
        }
        return content
    }

    private func finish(
        _ target: borrowing CopyTarget, _ content: DatabaseCopy.Content?, profile: CipherProfile?
    ) throws(StoreError) -> CopyReport {
        let result = try target.check(against: content, monitor)
        try target.adopt()
        return CopyReport(result, profile: profile)
    }

    /// Adds the numbers of the main file's damaged pages to a damage error.
    private func namingPages<T>(
        of source: Handle, _ cipher: FileCipher?, _ work: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        do throws(StoreError) {
            return try work()
        } catch  where error.code == .damaged && error.pages.isEmpty {
            guard let cipher, cipher.profile.pageMAC != .none else { throw error }
            let pages = RawPages(source, key: cipher.key, profile: cipher.profile)
            throw error.with(pages: (try? pages.damaged(maximumCount: 16)) ?? [])
        }
    }
}

/// Carries a target out of a transaction's body.
final class CopyTargetBox {
    var target: CopyTarget

    init(_ target: consuming CopyTarget) {
        self.target = target
    }
}
