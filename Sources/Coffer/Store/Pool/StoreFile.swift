import Synchronization

/// The file of a store, and what it takes to open one more connection to it.
final class StoreFile: Sendable {
    let location: FileLocation
    private let profile: CipherProfile
    private let mode: OpenMode
    private let configuration: Configuration
    private let claim: OpenFiles.Claim
    /// The budget for decrypted pages that its connections share.
    let cache: PageCacheBudget.Share
    /// The key of all connections. It changes only while nothing else uses the store.
    private let current: Mutex<FileCipher>

    /// - Throws: `.alreadyOpen` if a store has the file, `.notFound` if it was removed.
    init(
        _ opened: OpenFile, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        location = opened.file
        profile = opened.profile
        self.mode = mode
        self.configuration = configuration
        guard case .file(_, let identity) = try location.status() else {
            throw StoreError(.notFound, "the file \(location.path) was removed")
        }
        claim = try OpenFiles.Claim(identity, path: location.path)
        current = Mutex(FileCipher(key: opened.key.copy(), profile: opened.profile))
        cache = configuration.cacheBudget.join(
            byteCount: configuration.maximumCacheByteCount,
            connectionCount: configuration.maximumReaderCount + 1)
    }

    deinit {
        configuration.cacheBudget.leave(cache)
    }

    /// The key and the settings that all pages are encrypted with now.
    var cipher: FileCipher { current.withLock { $0 } }

    /// Opens it once more under the store's key: no derivation.
    func openReader(cacheByteCount: Int) throws(StoreError) -> OpenFile {
        try open(mode == .readOnly ? location.sourceRole : .reader, cacheByteCount)
    }

    func openWriter(cacheByteCount: Int) throws(StoreError) -> OpenFile {
        try open(mode == .readOnly ? location.sourceRole : .writer, cacheByteCount)
    }

    private func open(
        _ role: PhysicalOpen.Role, _ cacheByteCount: Int
    ) throws(StoreError) -> OpenFile {
        // The engine would say only that the file cannot be opened.
        guard case .file = try location.status() else {
            throw StoreError(
                .notFound, "the file at \(location.path) no longer exists",
                hint: "Put it back, or close the store.")
        }
        let cipher = cipher
        let physical = PhysicalOpen(
            file: location, profile: profile, configuration: configuration, role: role,
            cacheByteCount: cacheByteCount)
        let handle = try physical.open(key: cipher.key)
        return OpenFile(
            handle: handle, key: cipher.key.copy(), file: location, profile: profile)
    }

    /// Opens it with another key, with a cache of that size.
    ///
    /// - Throws: `.wrongKey` and other errors of opening; `.misuse` if its cipher settings have
    ///   changed.
    func open(
        with key: borrowing StoreKey, cacheByteCount: Int
    ) throws(StoreError) -> OpenFile {
        let opening = try Opening(
            path: location.path, mode: mode == .readOnly ? .readOnly : .mustExist,
            configuration: configuration, cacheByteCount: cacheByteCount)
        let state = try opening.open(key: key)
        guard state.profile == profile else {
            state.handle.close()
            throw StoreError(
                .misuse, "the file has other cipher settings now",
                hint: "Close the store and open it again.")
        }
        return state
    }

    /// Keeps a copy of this file's key; connections that open from now on use it. The key kept
    /// before is released, and wiped.
    func rememberKey(of state: OpenFile) {
        let cipher = FileCipher(key: state.key.copy(), profile: profile)
        current.withLock { $0 = cipher }
    }

    /// Lets another store have the file.
    func release() {
        configuration.cacheBudget.leave(cache)
        claim.release()
    }
}
