/// Content of a keyring: the epochs of its keys, their public names, and its slots. No field is
/// secret.
///
/// The bytes are described in `Documentation/file-format.md`.
struct KeyringContent: Hashable, Sendable {
    /// Whether the database beside the keyring is there and under a key of its root.
    enum State: UInt8, Sendable {
        /// The keyring was made, and the database not yet.
        case isBeingCreated = 0
        case isInUse = 1
        /// The database may still be under the key that it had before the keyring.
        case isBeingEnabled = 2
    }

    /// One of the fifteen places for a slot.
    enum Place: Hashable, Sendable {
        case free
        case slot(KeyringSlot)
        /// A slot of a kind that this version does not know: kept byte for byte.
        case unknown([UInt8])
    }

    static let placeCount = 15
    /// The highest epoch: that of a clock, 2^20 - 1, and 65 536 rotations more.
    static let maximumEpoch: UInt32 = (1 << 20) + 65_535
    /// The most pairs of a salt and a cost that the passphrases may have: each is one derivation of
    /// an opening.
    static let maximumDerivationCount = 2
    static let idByteCount = 16
    static let formerRootByteCount = 60

    /// Above 0 in keyrings of a later version, which this version reads and never writes.
    var minorVersion: UInt16 = 0
    /// Grows with each write.
    var generation: UInt64
    /// The salt of the database.
    let id: [UInt8]
    var state: State
    let profile: CipherProfile
    /// The size of the plaintext header of the database, in units of 16 bytes.
    var plaintextHeaderUnitCount: UInt8 = 0
    /// The number of the data key.
    var epoch: UInt32
    /// The highest epoch that the store ever had.
    var highestEpoch: UInt32
    var nextSlotID: UInt16 = 1
    /// Seconds since 1970.
    var rootMade: Int64
    var epochMade: Int64
    /// The epoch under the former root; 0 without one.
    var formerEpoch: UInt32 = 0
    /// The root before this one, wrapped by this one: 60 bytes, zeros without one.
    var formerRoot = [UInt8](repeating: 0, count: formerRootByteCount)
    /// How often the root was shown as a root backup.
    var rootBackupCount: UInt32 = 0
    /// When it was shown last, in seconds since 1970; 0 for never.
    var lastRootBackup: Int64 = 0
    var rootID: [UInt8]
    var keyID: [UInt8]
    var places = [Place](repeating: .free, count: placeCount)

    /// How many derivations a wrong passphrase takes.
    var derivationCount: Int { Set(slots.compactMap { Derivation(of: $0) }).count }

    var slots: [KeyringSlot] {
        places.compactMap { if case .slot(let slot) = $0 { slot } else { nil } }
    }
}

extension KeyringContent {
    /// The content of a new keyring, in its first epoch and without a slot.
    init(
        new root: borrowing RootKey, id: [UInt8], profile: CipherProfile, state: State, now: Int64
    ) {
        self.init(
            generation: 1, id: id, state: state, profile: profile, epoch: 1, highestEpoch: 1,
            rootMade: now, epochMade: now, rootID: root.id(for: id),
            keyID: root.dataKey(epoch: 1, id: id).id().bytes)
    }

    /// Names the data key of an epoch as that of the file.
    mutating func name(_ epoch: UInt32, under root: borrowing RootKey, now: Int64) {
        self.epoch = epoch
        highestEpoch = max(highestEpoch, epoch)
        epochMade = now
        keyID = root.dataKey(epoch: epoch, id: id).id().bytes
    }
}
