extension Keyring {
    /// Restores the keyring of a store from a copy, after the copy has opened the store.
    ///
    /// - Parameters:
    ///   - backup: The path of the copy, which is left alone.
    ///   - path: The path of the store. No program may have it open.
    ///   - credential: Opens a slot of the copy.
    ///   - configuration: Used to open the store.
    /// - Returns: The new path of the replaced keyring; `nil` if the store had none.
    /// - Throws: `StoreError` `.keyringMismatch` if the copy does not open this store; `.wrongKey`
    ///   if no slot is for the credential; `.keyringDamaged`, `.notFound`, `.busy`, `.full`, `.io`,
    ///   `.readOnly`. Nothing was changed then.
    /// - Complexity: For a passphrase one derivation.
    @discardableResult
    public static func restore(
        from backup: String, for path: String, by credential: borrowing KeyCredential,
        configuration: Configuration = .init()
    ) throws -> String? {
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: configuration, cacheByteCount: 1 << 20)
        let unlocked = try opening.proven(copy: backup, by: credential)
        let present = KeyringFile(of: opening.file)
        return try present.replace(timeout: configuration.waitTimeout) { () throws(StoreError) in
            try Self.counted(unlocked, on: present)
        }
    }

    /// Opens the store by a copy of its keyring, and changes nothing.
    ///
    /// - Returns: The copy.
    /// - Throws: As `restore`.
    package static func rehearseRestore(
        from backup: String, for path: String, by credential: borrowing KeyCredential,
        configuration: Configuration = .init()
    ) throws -> Keyring {
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: configuration, cacheByteCount: 1 << 20)
        _ = try opening.proven(copy: backup, by: credential)
        return try Keyring(contentsOf: backup)
    }

    /// The copy, with what the present keyring counts if it has the same root: root backups that
    /// were shown stay shown, and no number is given to a second slot.
    private static func counted(
        _ copy: borrowing UnlockedKeyring, on present: KeyringFile
    ) throws(StoreError) -> KeyringArea {
        guard let areas = try? present.areas(), copy.area.content.minorVersion == 0,
            let newer = areas.authentic(under: copy.root)?.content
        else { return copy.area }
        var content = copy.area.content
        content.generation = max(content.generation, newer.generation) + 1
        content.nextSlotID = max(content.nextSlotID, newer.nextSlotID)
        content.highestEpoch = max(content.highestEpoch, newer.highestEpoch)
        content.rootBackupCount = max(content.rootBackupCount, newer.rootBackupCount)
        content.lastRootBackup = max(content.lastRootBackup, newer.lastRootBackup)
        return try KeyringArea(content, under: copy.root)
    }

    /// Restores the keyring of a store from a copy, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Parameters:
    ///   - backup: The path of the copy, which is left alone.
    ///   - path: The path of the store. No program may have it open.
    ///   - credential: Opens a slot of the copy.
    ///   - configuration: Used to open the store.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form.
    @discardableResult
    public static func restore(
        from backup: String, for path: String, by credential: borrowing KeyCredential,
        configuration: Configuration = .init()
    ) async throws -> String? {
        let credential = KeyBox(credential.copy())
        return try await Store.offPool {
            try restore(
                from: backup, for: path, by: credential.key, configuration: configuration)
        }
    }

    /// Rebuilds a lost keyring from a root backup, with one slot.
    ///
    /// The slots of the present keyring are not restored. The new one counts one root backup, or as
    /// many as the present keyring if that has the same root.
    ///
    /// - Parameters:
    ///   - path: The path of the store. No program may have it open.
    ///   - letters: The characters of the root backup, in either case, with or without dashes.
    ///   - new: The credential of the slot.
    ///   - label: The name of the slot in lists.
    ///   - cost: The cost of a guess, for a passphrase.
    ///   - configuration: Used to open the store.
    ///   - progress: Called on the working thread, several times a second while keys are tried.
    /// - Returns: The new path of the replaced keyring; `nil` if the store had none.
    /// - Throws: `StoreError` `.keyringMismatch` if the root backup is another store's; `.misuse`
    ///   for a slip in the letters, or a credential of a wrong size; `.notFound`, `.damaged`,
    ///   `.busy`, `.full`, `.io`, `.readOnly`. Nothing was changed then.
    /// - Complexity: One derivation for a passphrase. For a store whose epoch is far from 1 and
    ///   from the clock, up to a minute for each profile.
    @discardableResult
    public static func rebuild(
        for path: String, rootBackup letters: some Collection<UInt8>, as new: borrowing NewSlot,
        label: String, cost: KeyCost = .standard, configuration: Configuration = .init(),
        progress: ((RebuildProgress) -> Void)? = nil
    ) throws -> String? {
        let text = SecretBytes(letters)
        let root = RootKey(
            bytes: try text.withUnsafeBytes { (bytes) throws(StoreError) -> SecretBytes in
                try KeyLetters.rootBackup.secret(bytes)
            })
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: configuration, cacheByteCount: 1 << 20)
        var content = try opening.newContent(under: root, progress)
        content.rootBackupCount = 1
        let now = configuration.secondsSince1970
        content.lastRootBackup = now
        let prepared = try PreparedSlot(
            new, label: SlotLabel(label), cost: cost,
            memoryMax: configuration.maximumKeyMemoryByteCount, for: content)
        _ = try content.add(prepared, under: root, now: now)
        let present = KeyringFile(of: opening.file)
        return try present.replace(timeout: configuration.waitTimeout) { () throws(StoreError) in
            var content = content
            if let counted = (try? present.areas())?.authentic(under: root)?.content {
                content.rootMade = counted.rootMade
                content.rootBackupCount = max(1, counted.rootBackupCount)
            }
            return try KeyringArea(content, under: root)
        }
    }

    /// Rebuilds a lost keyring from a root backup, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Parameters:
    ///   - path: The path of the store. No program may have it open.
    ///   - letters: The characters of the root backup, in either case, with or without dashes.
    ///   - new: The credential of the slot.
    ///   - label: The name of the slot in lists.
    ///   - cost: The cost of a guess, for a passphrase.
    ///   - configuration: Used to open the store.
    ///   - progress: As in the synchronous form.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form.
    @discardableResult
    public static func rebuild(
        for path: String, rootBackup letters: some Collection<UInt8>, as new: borrowing NewSlot,
        label: String, cost: KeyCost = .standard, configuration: Configuration = .init(),
        progress: (@Sendable (RebuildProgress) -> Void)? = nil
    ) async throws -> String? {
        let new = KeyBox(new.copy())
        let letters = KeyBox(SecretBytes(letters))
        return try await Store.offPool {
            try letters.key.withUnsafeBytes { letters in
                try rebuild(
                    for: path, rootBackup: letters, as: new.key, label: label, cost: cost,
                    configuration: configuration, progress: progress)
            }
        }
    }
}

/// How far `Keyring.rebuild` has come in its search for the key of the store.
///
/// ```swift
/// try Keyring.rebuild(for: path, rootBackup: letters, as: .passphrase(new), label: "me") {
///     print("\($0.count) of at most \($0.countTotal) keys")
/// }
/// ```
///
/// The likely keys come first, so most searches end long before the total.
public struct RebuildProgress: Sendable {
    /// Keys that were tried.
    public let count: Int
    /// Keys that are tried before the root backup is taken for another store's.
    public let countTotal: Int
}

extension Opening {
    /// Reads a copy of the keyring, and opens the file by it.
    ///
    /// - Throws: As `Keyring.restore`.
    fileprivate func proven(
        copy path: String, by credential: borrowing KeyCredential
    ) throws(StoreError) -> UnlockedKeyring {
        let source = try KeyringFile(copyAt: path, of: file)
        guard let unlocked = try unlock(source, by: credential) else {
            throw StoreError(
                .notFound, "there is no file at \(source.location.path)",
                hint: "Pass the path of a copy that keys.backUp has made.")
        }
        try openAnyEpoch(of: unlocked.area.content, unlocked.root).file.handle.close()
        return unlocked
    }

    /// The errors of an attempt with a wrong profile or page size.
    private static let meansOtherProfile: [StoreError.Code] = [
        .keyringMismatch, .misuse, .needsUpgrade,
    ]

    /// The content of a new keyring without a slot, for a file under a key of this root.
    ///
    /// - Throws: `.keyringMismatch` for a file under a key of another root; as opening the file.
    fileprivate func newContent(
        under root: borrowing RootKey, _ progress: ((RebuildProgress) -> Void)?
    ) throws(StoreError) -> KeyringContent {
        let handle = try openHandle()
        let salt = try readSalt(handle)
        handle.close()
        let now = configuration.secondsSince1970
        let likely = profiles(try Engine.capabilities)
        // Pages of another size than the profile's are rare, and so is a wrong clock.
        let profiles = likely + likely.flatMap { Diagnosis.resized($0).dropFirst() }
        func content(_ profile: CipherProfile) -> KeyringContent {
            KeyringContent(new: root, id: salt, profile: profile, state: .isInUse, now: now)
        }
        func count(_ searchesAll: Bool) -> Int {
            EpochCandidates(
                of: content(likely[0]), hour: EpochCandidates.hour(of: now), isWhole: searchesAll
            ).count
        }
        let countTotal = profiles.count * count(false) + likely.count * count(true)
        var before = 0
        for (profiles, searchesAll) in [(profiles, false), (likely, true)] {
            for profile in profiles {
                var content = content(profile)
                let done = before
                before += count(searchesAll)
                do throws(StoreError) {
                    let found = try openAnyEpoch(
                        of: content, root, searchesAll: searchesAll
                    ) { tried in
                        progress?(RebuildProgress(count: done + tried, countTotal: countTotal))
                    }
                    found.file.handle.close()
                    content.epoch = found.epoch
                    content.highestEpoch = found.epoch
                    content.keyID = root.dataKey(epoch: found.epoch, id: salt).id().bytes
                    return content
                } catch  where Self.meansOtherProfile.contains(error.code) {
                    continue
                }
            }
        }
        throw StoreError(
            .keyringMismatch, "no key of this root opens \(file.path)",
            hint: "The root backup belongs to another store, or to a root that was replaced. If it "
                + "is the right one, the first page of the file may be damaged.")
    }
}
