#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The public part of a store's keyring, readable without a secret: the slots, and the ids and ages
/// of the keys.
///
/// ```swift
/// let keyring = try Keyring(of: "notes.db")
/// for slot in keyring.slots { print(slot.id, slot.kind, slot.label) }
/// ```
///
/// A writer of the file can forge its content, because only a credential authenticates it.
public struct Keyring: Sendable {
    private let content: KeyringContent
    /// Whether both copies of the content that the file has are whole and equal.
    ///
    /// If not, one of them was damaged, or a change ended before its end. The other copy counts.
    /// The next change of a slot writes both.
    public let isWhole: Bool

    init(_ content: KeyringContent, isWhole: Bool) {
        self.content = content
        self.isWhole = isWhole
    }

    /// Reads the keyring of a store. Neither file is locked, and the store is not opened.
    ///
    /// - Parameter path: The path of the store, not of the keyring.
    /// - Throws: `StoreError` `.keyringMissing`, `.keyringDamaged`, `.tooCostly`,
    ///   `.needsNewerProgram`; `.io` if it cannot be read; `.misuse` for a path that cannot be one.
    /// - Complexity: O(1): 32 KiB are read and hashed.
    public init(of path: String) throws {
        let file = KeyringFile(of: try FileLocation(path))
        guard let areas = try file.areas() else { throw StoreError.noKeyring(file) }
        content = areas.current[0].content
        isWhole = areas.areEqual
    }

    /// Reads a copy of a keyring, such as one that `keys.backUp(to:)` has made.
    ///
    /// ```swift
    /// let copy = try Keyring(contentsOf: "notes.keyring.bak")
    /// print(copy.storeID, copy.slots.count)
    /// ```
    ///
    /// - Parameter path: The path of the copy itself.
    /// - Throws: `StoreError` `.notFound`; `.alreadyOpen` for the file of a store that is open;
    ///   otherwise as ``init(of:)``.
    /// - Complexity: O(1): 32 KiB are read and hashed.
    public init(contentsOf path: String) throws {
        let file = try KeyringFile(copyAt: path)
        guard let areas = try file.areas() else {
            throw StoreError(
                .notFound, "there is no file at \(file.location.path)",
                hint: "Pass the path of a copy that keys.backUp has made.")
        }
        content = areas.current[0].content
        isWhole = areas.areEqual
    }

    /// The slots, in the order of their numbers: the oldest comes first.
    public var slots: [KeySlot] { content.slots.map { KeySlot($0) }.sorted { $0.id < $1.id } }

    /// The number of the store's data key, which is 1 for a new store.
    public var epoch: Int { Int(content.epoch) }

    /// The public id of the data key, as ``Store/keyID()`` returns it.
    public var keyID: KeyID { KeyID(bytes: content.keyID) }

    /// The public id of the root key, 32 hex digits. Keyrings with the same root have the same id.
    public var rootID: String { content.rootID.hexDigits }

    /// The public id of the store: the 16 salt bytes of its file, as 32 hex digits. Copies of the
    /// file have the same.
    public var storeID: String { content.id.hexDigits }

    /// The number that the next slot gets.
    package var nextSlotID: KeySlot.ID { content.nextSlotID }

    /// The name of a keyring has this after the name of its store.
    package static let fileSuffix = KeyringFile.suffix

    /// The size of a keyring, and of every copy of one.
    package static let fileByteCount = KeyringFile.byteCount

    /// Whether something has the name of the store's keyring.
    ///
    /// - Throws: `StoreError` `.misuse` for a path that cannot be one.
    package static func exists(for path: String) throws -> Bool {
        KeyringFile(of: try FileLocation(path)).exists
    }

    /// The profile of the store.
    public var profile: CipherProfile { content.profile }

    /// When the root key was made.
    public var rootMade: Date { Date(timeIntervalSince1970: Double(content.rootMade)) }

    /// When the data key was made.
    public var keyMade: Date { Date(timeIntervalSince1970: Double(content.epochMade)) }

    /// Whether a replacement of the root key has begun, and has not been finished. The slots open
    /// the store all the same. `Store.replaceRootKey(dropping:maximumPause:keeping:progress:)` or
    /// `Store.rotate(maximumPause:progress:)` finishes it.
    public var isReplacingRoot: Bool { content.hasFormerRoot }

    /// Whether the file may still have the key that it had before the keyring: a call of
    /// `Store.enableKeyring(_:key:as:label:endsOtherPrograms:configuration:recovery:)` has begun
    /// and was not finished. The same call again finishes.
    public var isBeingEnabled: Bool { content.state == .isBeingEnabled }

    /// How often the root key was shown as a root backup, and when last.
    public var rootBackups: (count: Int, last: Date?) {
        let last = content.lastRootBackup
        return (
            Int(content.rootBackupCount),
            last == 0 ? nil : Date(timeIntervalSince1970: Double(last))
        )
    }

    /// The wrapped secret of an external slot, for the service that unwraps it.
    ///
    /// - Throws: `StoreError` `.notFound` if no slot has this number; `.misuse` if the slot is not
    ///   external.
    public func blob(of slotID: UInt16) throws -> [UInt8] {
        let slot = try content.slot(slotID)
        guard slot.kind == .external else {
            throw StoreError(
                .misuse, "slot \(slotID) is not external, so it has no wrapped secret",
                hint: "The list of slots shows the kind of each.")
        }
        return slot.blob
    }
}
