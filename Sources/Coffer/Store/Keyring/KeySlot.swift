#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An entry of a keyring: what a list of slots shows of a credential. Nothing in it is secret.
///
/// ```swift
/// for slot in try store.keys.slots { print(slot.id, slot.kind, slot.label) }
/// ```
public struct KeySlot: Sendable, Hashable, Identifiable {
    /// The kind of credential that opens a slot.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The kind in words: `key file`.
        public let description: String

        /// Text that a person types.
        public static let passphrase = Kind(description: "passphrase")
        /// 32 bytes in a file.
        public static let keyFile = Kind(description: "key file")
        /// 56 letters on paper.
        public static let recoveryKey = Kind(description: "recovery key")
        /// 32 bytes that a service unwraps.
        public static let external = Kind(description: "external")
        /// The private key of a person or service.
        public static let recipient = Kind(description: "recipient")
    }

    /// The number of the slot, which no other slot of the keyring had or will have.
    public let id: UInt16
    /// The kind of credential that opens the slot.
    public let kind: Kind
    /// The name that a person gave the slot; perhaps empty.
    public let label: String
    /// When the slot was added.
    public let made: Date
    /// When its credential was set.
    public let changed: Date
    /// The cost of a guess at the passphrase; `nil` for other kinds.
    public let cost: KeyCost?
    /// 16 hex digits that name a recipient's public key, or the blob of an external slot; `nil` for
    /// other kinds.
    public let fingerprint: String?

    /// How many bytes a wrapped secret may have.
    package static let maximumBlobByteCount = KeyringSlot.maximumExtensionByteCount

    /// Refuses a label that no slot can have.
    ///
    /// - Throws: `.misuse` for one that is too long, or has a character that is not shown.
    package static func require(label: String) throws { _ = try SlotLabel(label) }

    init(_ slot: KeyringSlot) {
        id = slot.id
        kind =
            switch slot.kind {
            case .passphrase: .passphrase
            case .keyFile: .keyFile
            case .recoveryKey: .recoveryKey
            case .external: .external
            case .recipient: .recipient
            }
        label = slot.label.text
        made = Date(timeIntervalSince1970: Double(slot.made))
        changed = Date(timeIntervalSince1970: Double(slot.changed))
        cost = slot.cost
        fingerprint = slot.fingerprint
    }
}
