import Synchronization

/// The file of a store, and what it takes to open one more connection to it.
final class StoreFile: Sendable {
    let location: FileLocation
    private let profile: CipherProfile
    private let mode: OpenMode
    private let configuration: Configuration
    /// `nil` while the store has no connection.
    private let claim: Mutex<OpenFiles.Claim?>
    /// The budget for decrypted pages that its connections share.
    let cache: PageCacheBudget.Share
    /// The key of new connections. Without a keyring it changes only while nothing else uses the
    /// store.
    private let current: Mutex<Key>
    /// Copies of two facts about `current`. Every read and write needs them, and a mutex would cost
    /// it more.
    private let generation = Atomic(0)
    private let isOfKeyring: Atomic<Bool>
    /// Held while the key changes: by a rotation of this store, or to follow that of another
    /// process.
    private let keyChange = Mutex(())

    /// The key, and the keyring that gave it; `nil` for a key of its own.
    private struct Key: Sendable {
        let cipher: FileCipher
        let keyring: OpenKeyring?
        /// How many keys the store had before this one.
        let generation: Int

        init(of state: OpenFile, keyring: OpenKeyring?, generation: Int) {
            cipher = FileCipher(key: state.key.copy(), profile: state.profile)
            self.keyring = keyring
            self.generation = generation
        }
    }

    /// Claims the file of an open connection for one store of this process.
    ///
    /// - Throws: `.alreadyOpen` if a store of this process has the file, `.notFound` if the file
    ///   was removed.
    init(
        _ opened: OpenFile, mode: OpenMode, configuration: Configuration
    ) throws(StoreError) {
        location = opened.file
        profile = opened.profile
        self.mode = mode
        self.configuration = configuration
        claim = Mutex(try OpenFiles.Claim(Self.identity(of: location), path: location.path))
        current = Mutex(Key(of: opened, keyring: opened.keyring, generation: 0))
        isOfKeyring = Atomic(opened.keyring != nil)
        cache = configuration.cacheBudget.join(
            byteCount: configuration.maximumCacheByteCount,
            connectionCount: configuration.maximumReaderCount + 1)
    }

    deinit { leaveCacheBudget() }

    /// Gives the share of the page caches back. A second call does nothing.
    func leaveCacheBudget() {
        configuration.cacheBudget.leave(cache)
    }

    /// The key and the settings that all pages are encrypted with now.
    var cipher: FileCipher { current.withLock { $0.cipher } }

    /// The keyring that gave the key; `nil` for a key of its own.
    var keyring: OpenKeyring? {
        guard hasKeyring else { return nil }
        return current.withLock { $0.keyring }
    }

    /// Whether a keyring gave the key.
    var hasKeyring: Bool { isOfKeyring.load(ordering: .acquiring) }

    /// The key with its keyring, of one moment.
    var keyOfKeyring: (cipher: FileCipher, keyring: OpenKeyring?) {
        current.withLock { ($0.cipher, $0.keyring) }
    }

    /// How many keys the store had before the present one. A connection that was opened in an
    /// earlier generation has an earlier key.
    var keyGeneration: Int { generation.load(ordering: .acquiring) }

    /// Opens one more connection for reading, with the store's key, which is not derived again.
    ///
    /// - Throws: `.notFound` if the file no longer exists; otherwise the errors of opening, such as
    ///   `.wrongKey` if another process has changed the key.
    func openReader(cacheByteCount: Int) throws(StoreError) -> OpenFile {
        try open(mode == .readOnly ? location.sourceRole : .reader, cacheByteCount)
    }

    func openWriter(cacheByteCount: Int) throws(StoreError) -> OpenFile {
        try open(mode == .readOnly ? location.sourceRole : .writer, cacheByteCount)
    }

    private func open(
        _ role: PhysicalOpen.Role, _ cacheByteCount: Int
    ) throws(StoreError) -> OpenFile {
        // Without a file the engine would say only that it cannot be opened.
        _ = try Self.identity(of: location)
        let cipher = cipher
        let physical = PhysicalOpen(
            file: location, profile: profile, configuration: configuration, role: role,
            cacheByteCount: cacheByteCount)
        let handle = try opened(physical, key: cipher.key)
        return OpenFile(
            handle: handle, key: cipher.key.copy(), file: location, profile: profile)
    }

    /// Opens a connection; once more if another file has taken the path meanwhile.
    private func opened(
        _ physical: PhysicalOpen, key: borrowing RawKey
    ) throws(StoreError) -> Handle {
        for _ in 1..<StoreError.replacementTryCount {
            do throws(StoreError) {
                return try physical.open(key: key)
            } catch  where error.isAboutReplacement {
                continue
            }
        }
        return try physical.open(key: key)
    }

    /// Opens a connection to the file with another key; the store's key stays the same until
    /// `rememberKey(of:)`.
    ///
    /// - Throws: `.wrongKey` and other errors of opening; `.misuse` if the file's cipher settings
    ///   have changed.
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

    /// Makes the key of this open file the key of the store, for connections that open from now on.
    func rememberKey(of state: OpenFile) {
        rememberKey(of: state, keyring: state.keyring)
    }

    private func rememberKey(of state: OpenFile, keyring: OpenKeyring?) {
        current.withLock { current in
            current = Key(of: state, keyring: keyring, generation: current.generation + 1)
            isOfKeyring.store(keyring != nil, ordering: .releasing)
            // Last, so that nobody takes an earlier key for one of this generation.
            generation.store(current.generation, ordering: .releasing)
        }
    }

    // MARK: Rotation

    /// Changes the key of the file to that of another epoch by `change`, and makes it the store's.
    /// A read that meets the new key meanwhile waits for the end.
    ///
    /// - Parameter keyring: The keyring in that epoch.
    /// - Throws: What `change` throws; the key of the store then stays.
    func rotate(
        to keyring: OpenKeyring,
        _ change: () throws(RekeyFailure) -> (report: RekeyReport, file: OpenFile)
    ) throws(RekeyFailure) -> RekeyReport {
        try keyChange.withLock { _ throws(RekeyFailure) in
            let (report, state) = try change()
            rememberKey(of: state, keyring: keyring)
            return report
        }
    }

    /// Whether another process rotates the key, or has done so, perhaps unknown to this store.
    func isRotated(since generation: Int) -> Bool {
        guard let keyring, keyGeneration == generation else { return true }
        if KeyringByteLock.isHeld(.rotates, of: keyring.file) { return true }
        // Without a readable keyring nothing tells of a rotation.
        guard let content = (try? keyring.current())?.content else { return false }
        return content.epoch > keyring.epoch || content.rootID != keyring.rootID
    }

    /// Finds the key that another process has given the file by a rotation, and makes it the
    /// store's. Does nothing if the store has another key by now than in `generation`.
    ///
    /// - Parameters:
    ///   - refusal: The error of the key that does not fit any more.
    ///   - isOwn: Whether this store holds the lock of rotations itself.
    /// - Returns: The new epoch; `nil` if nothing was to do.
    /// - Throws: `refusal`, with a hint, if no key of the root opens the file, or if the root is
    ///   not kept; `refusal` for damage under the key that the store has; otherwise as opening the
    ///   file.
    /// - Complexity: Mostly one opening; at worst O(*hours since 2020*), a few seconds.
    func followRotation(
        since generation: Int, after refusal: StoreError, isOwn: Bool
    ) throws(StoreError) -> UInt32? {
        try keyChange.withLock { _ throws(StoreError) in
            let (keyring, isSame) = current.withLock { ($0.keyring, $0.generation == generation) }
            guard isSame, let keyring else { return nil }
            do throws(StoreError) {
                let (root, area) = try keyring.forFollowing()
                let opening = try Opening(
                    path: location.path, mode: mode == .readOnly ? .readOnly : .mustExist,
                    configuration: configuration, cacheByteCount: 1 << 20)
                let found = try opening.openAnyEpoch(
                    of: area.content, root.key, ownsLock: isOwn)
                if (found.epoch, found.rootID) == (keyring.epoch, keyring.rootID) {
                    found.file.handle.close()
                    guard refusal.code != .damaged else { throw refusal }
                    return nil
                }
                keyring.adopt(root, of: area)
                rememberKey(
                    of: found.file, keyring: keyring.inEpoch(found.epoch, rootID: found.rootID))
                found.file.handle.close()
                return found.epoch
            } catch  where [.keyringMismatch, .misuse].contains(error.code) {
                guard refusal.code == .wrongKey else { throw refusal }
                throw refusal.with(
                    hint: "Another process has replaced the root of the keyring without the slot "
                        + "that opened the store, or the store does not keep its root: reopen it "
                        + "with a credential.")
            }
        }
    }

    // MARK: Claim

    /// - Throws: `.notFound` if the file no longer exists.
    private static func identity(
        of location: FileLocation
    ) throws(StoreError) -> FileLocation.Identity {
        guard case .file(_, let identity) = try location.status() else {
            throw StoreError(
                .notFound, "the file at \(location.path) no longer exists",
                hint: "Put it back, or close the store.")
        }
        return identity
    }

    /// Claims the file that is at the path now. The store keeps its own claim until `keep(_:)`.
    ///
    /// - Returns: The new claim; the store's own one if it is on this file.
    /// - Throws: `.alreadyOpen` if another store of this process has the file, `.notFound` if the
    ///   file was removed.
    func newClaim() throws(StoreError) -> OpenFiles.Claim {
        let identity = try Self.identity(of: location)
        if let held = claim.withLock({ $0 }), held.isOn(identity) { return held }
        return try OpenFiles.Claim(identity, path: location.path)
    }

    /// Whether the claim is on the file that is at the path now.
    ///
    /// - Throws: `.notFound` if the file was removed.
    func isAtPath(_ claim: OpenFiles.Claim) throws(StoreError) -> Bool {
        claim.isOn(try Self.identity(of: location))
    }

    /// The file that the store has claimed; `nil` while it is paused or closed.
    var claimedFile: FileLocation.Identity? { claim.withLock { $0?.file } }

    /// Whether the claim is the store's own.
    func holds(_ other: OpenFiles.Claim) -> Bool { claim.withLock { $0 === other } }

    /// Makes this claim the store's, and ends the claim on a file that the path named before.
    func keep(_ newClaim: OpenFiles.Claim) {
        claim.withLock { $0 = newClaim }
    }

    /// Closes all connections by `close`. Then another store of this process may open the file.
    func endClaim(_ close: () -> Void) {
        claim.withLock { $0 }?.willEnd()
        close()
        claim.withLock { $0.take() }?.release()
    }
}
