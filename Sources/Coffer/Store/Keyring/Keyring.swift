#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the keyring beside a store says without a secret: its slots, and the names and ages of its
/// keys.
///
/// ```swift
/// let keyring = try Keyring(of: "notes.db")
/// for slot in keyring.slots { print(slot.id, slot.kind, slot.label) }
/// ```
///
/// A writer of the file can forge its content, because only a credential authenticates it.
struct Keyring: Sendable {
    private let content: KeyringContent

    /// Reads the keyring of a store. Neither file is locked, and the store is not opened.
    ///
    /// - Parameter path: The path of the store, not of the keyring.
    /// - Throws: `StoreError` `.keyringMissing`, `.keyringDamaged`, `.tooCostly`,
    ///   `.needsNewerProgram`; `.io` if it cannot be read; `.misuse` for a path that cannot be one.
    /// - Complexity: O(1): 32 KiB are read and hashed.
    init(of path: String) throws {
        let file = KeyringFile(of: try FileLocation(path))
        guard let areas = try file.areas() else { throw StoreError.noKeyring(file) }
        content = areas.current[0].content
    }

    /// The slots, in the order of their places in the file.
    var slots: [KeySlot] { content.slots.map { KeySlot($0) } }

    /// The number of the store's data key, which grows with each rotation.
    var epoch: Int { Int(content.epoch) }

    /// The public name of the data key: that of ``Store/keyID()``.
    var keyID: KeyID { KeyID(bytes: content.keyID) }

    /// The public name of the root key, which tells keyrings of one root.
    var rootID: String { content.rootID.map { KeyID(bytes: [$0]).description }.joined() }

    /// The profile of the store.
    var profile: CipherProfile { content.profile }

    /// When the root key was made.
    var rootMade: Date { Date(timeIntervalSince1970: Double(content.rootMade)) }

    /// When the data key was made.
    var keyMade: Date { Date(timeIntervalSince1970: Double(content.epochMade)) }

    /// How often the root key was shown as a root backup, and when last.
    var rootBackups: (count: Int, last: Date?) {
        let last = content.lastRootBackup
        return (
            Int(content.rootBackupCount),
            last == 0 ? nil : Date(timeIntervalSince1970: Double(last))
        )
    }

    /// The wrapped secret of an external slot, for the service that unwraps it.
    ///
    /// - Throws: `StoreError` `.notFound` if there is no such slot; `.misuse` for another kind of
    ///   slot.
    func blob(of slotID: UInt16) throws -> [UInt8] {
        let slot = try content.slot(slotID)
        guard slot.kind == .external else {
            throw StoreError(.misuse, "slot \(slotID) is not external: nothing in it is unwrapped")
        }
        return slot.blob
    }
}

// MARK: - Putting a keyring back

extension Keyring {
    /// Puts a copy of a keyring beside its store, after the copy has opened the store.
    ///
    /// - Parameters:
    ///   - backup: The path of the copy, which stays.
    ///   - path: The path of the store. No program may have it open.
    ///   - credential: Opens a slot of the copy.
    /// - Returns: The new name of the keyring that was there; `nil` if there was none.
    /// - Throws: `StoreError` `.keyringMismatch` if the copy does not open this store; `.wrongKey`
    ///   if no slot is for the credential; `.keyringDamaged`, `.notFound`, `.busy`, `.full`, `.io`,
    ///   `.readOnly`. Nothing was changed then.
    /// - Complexity: For a passphrase one derivation.
    @discardableResult
    static func restore(
        from backup: String, for path: String, by credential: borrowing KeyCredential,
        configuration: Configuration = .init()
    ) throws -> String? {
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: configuration, cacheByteCount: 1 << 20)
        let source = KeyringFile(at: try FileLocation(backup), of: opening.file)
        // Reading and closing a database that is open here would end its locks.
        if case .file(_, let identity) = try source.location.status() {
            try OpenFiles.require(identity, isFreeAt: source.location.path)
        }
        guard let areas = try source.areas() else {
            throw StoreError(.notFound, "there is no file at \(source.location.path)")
        }
        let unlocked = try areas.unlocked(
            by: credential, memoryMax: configuration.maximumKeyMemoryByteCount)
        let (open, _) = try opening.openAnyEpoch(of: unlocked.area.content, unlocked.root)
        open.handle.close()
        return try KeyringFile(of: opening.file)
            .replace(with: unlocked.area, timeout: configuration.waitTimeout)
    }

    /// Makes a keyring from a root backup, with one slot: for a store whose keyring is lost.
    ///
    /// Slots of the lost keyring do not come back. The new keyring counts one root backup.
    ///
    /// - Parameters:
    ///   - path: The path of the store. No program may have it open.
    ///   - letters: The characters of the root backup, in either case, with or without dashes.
    ///   - new: The credential that opens the store from now on.
    ///   - label: What a list of slots shows.
    ///   - cost: The cost of a guess, for a passphrase.
    /// - Returns: The new name of the keyring that was there; `nil` if there was none.
    /// - Throws: `StoreError` `.keyringMismatch` if the root backup is another store's; `.misuse`
    ///   for a slip in the letters, or a credential of a wrong size; `.notFound`, `.damaged`,
    ///   `.busy`, `.full`, `.io`, `.readOnly`. Nothing was changed then.
    /// - Complexity: For a passphrase one derivation; for each profile up to a minute, if the
    ///   store was rotated under a wrong clock.
    @discardableResult
    static func rebuild(
        for path: String, rootBackup letters: some Collection<UInt8>, as new: borrowing NewSlot,
        label: String, cost: KeyCost = .standard, configuration: Configuration = .init()
    ) throws -> String? {
        let text = SecretBytes(copyingAll: letters)
        let root = RootKey(
            bytes: try text.withUnsafeBytes { (bytes) throws(StoreError) -> SecretBytes in
                try KeyLetters.rootBackup.secret(bytes)
            })
        let opening = try Opening(
            path: path, mode: .readOnly, configuration: configuration, cacheByteCount: 1 << 20)
        var content = try opening.newContent(under: root)
        content.rootBackupCount = 1
        let now = Int64(configuration.currentDate().timeIntervalSince1970)
        content.lastRootBackup = now
        let prepared = try PreparedSlot(
            new, label: SlotLabel(label), cost: cost,
            memoryMax: configuration.maximumKeyMemoryByteCount, for: content)
        _ = try content.add(prepared, under: root, now: now)
        let area = try KeyringArea(content, under: root)
        return try KeyringFile(of: opening.file)
            .replace(with: area, timeout: configuration.waitTimeout)
    }
}

extension Opening {
    /// The errors of a wrong profile: in another one, perhaps an older one or with pages of another
    /// size, the key fits.
    private static let meansOtherProfile: [StoreError.Code] = [
        .keyringMismatch, .misuse, .needsUpgrade,
    ]

    /// The content of a new keyring for a file whose keys come from this root, without a slot.
    ///
    /// - Throws: `.keyringMismatch` if they come from another root; as opening the file.
    fileprivate func newContent(under root: borrowing RootKey) throws(StoreError) -> KeyringContent
    {
        let handle = try openHandle()
        let salt = try readSalt(handle)
        handle.close()
        let now = Int64(configuration.currentDate().timeIntervalSince1970)
        let likely = profiles(try Engine.capabilities)
        // Pages of another size than the profile's are rare, and so is a wrong clock.
        let profiles = likely + likely.flatMap { Diagnosis.resized($0).dropFirst() }
        for (profiles, searchesAll) in [(profiles, false), (likely, true)] {
            for profile in profiles {
                var content = KeyringContent(
                    new: root, id: salt, profile: profile, state: .isInUse, now: now)
                do throws(StoreError) {
                    let (open, epoch) = try openAnyEpoch(
                        of: content, root, searchesAll: searchesAll)
                    open.handle.close()
                    content.epoch = epoch
                    content.highestEpoch = epoch
                    content.keyID = root.dataKey(epoch: epoch, id: salt).id().bytes
                    return content
                } catch  where Self.meansOtherProfile.contains(error.code) {
                    continue
                }
            }
        }
        throw StoreError(
            .keyringMismatch, "no key of this root opens \(file.path)",
            hint: "The root backup is another store's, or of before its root was replaced.")
    }
}
