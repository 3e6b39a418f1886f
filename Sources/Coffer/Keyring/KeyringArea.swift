import Crypto

/// One of the two copies of a keyring's content in its file: 16 384 bytes.
///
/// A digest tells a torn write, and a MAC under the root tells everything else. Both areas have the
/// same content, except between the two halves of a write.
struct KeyringArea: Hashable, Sendable {
    static let byteCount = 16_384

    let content: KeyringContent
    /// The bytes as they are in the file, with MAC and digest.
    let bytes: [UInt8]

    /// Renders a content, with the MAC of its root.
    ///
    /// - Throws: `.needsNewerProgram` for the content of a later version, whose unknown bytes
    ///   would be lost.
    init(_ content: KeyringContent, under root: borrowing RootKey) throws(StoreError) {
        guard content.minorVersion == 0 else { throw Self.newer }
        var bytes = Self.rendered(content)
        bytes.replace(
            from: Offset.code, with: root.authenticationCode(for: bytes[..<Offset.code]))
        bytes.replace(from: Offset.digest, with: Self.digest(of: bytes))
        self.content = content
        self.bytes = bytes
    }

    /// Reads an area; its MAC is not looked at.
    ///
    /// - Throws: `.keyringDamaged`; `.tooCostly` for a cost that no keyring may have;
    ///   `.needsNewerProgram` for a later major version.
    init(stored bytes: [UInt8]) throws(StoreError) {
        guard bytes.count == Self.byteCount else {
            throw Self.damaged("an area has \(bytes.count) bytes instead of \(Self.byteCount)")
        }
        guard Array(bytes[Offset.digest...]) == Self.digest(of: bytes) else {
            throw Self.damaged("the digest does not fit the bytes")
        }
        content = try Self.parsed(bytes)
        self.bytes = bytes
    }

    /// Whether the area was written by an owner of this root.
    func isAuthentic(under root: borrowing RootKey) -> Bool {
        root.isAuthentic(bytes[Offset.code..<Offset.digest], for: bytes[..<Offset.code])
    }

    /// Data that ChaCha20-Poly1305 authenticates with a slot's wrapped root: the format, the
    /// keyring's id, and the slot's fields in front of its commitment.
    static func bound(to slot: KeyringSlot, id: [UInt8]) -> [UInt8] {
        Array("coffer1 slot".utf8) + magic + majorVersion.bigEndianBytes + id + slot.boundBytes()
    }

    // MARK: The bytes

    /// Not a text in any encoding, and changed by every transfer that changes line ends.
    static let magic: [UInt8] = [0x93, 0x43, 0x46, 0x52, 0x0d, 0x0a, 0x1a, 0x0a]
    private static let majorVersion: UInt16 = 1
    private static let profiles: [UInt8: CipherProfile] = [
        1: .sqlcipher3, 2: .portable, 3: .sqlcipher4,
    ]

    private enum Offset {
        static let majorVersion = 8
        static let minorVersion = 10
        static let areaByteCount = 12
        static let generation = 16
        static let id = 24
        static let state = 40
        static let profile = 41
        static let plaintextHeader = 42
        static let pageByteCount = 44
        static let epoch = 48
        static let nextSlotID = 52
        static let rootMade = 56
        static let epochMade = 64
        static let highestEpoch = 72
        static let formerEpoch = 76
        static let formerRoot = 80
        static let rootBackupCount = 140
        static let lastRootBackup = 144
        static let rootID = 152
        static let keyID = 168
        static let headerEnd = 176
        static let slots = 512
        static let slotsEnd = 15_872
        static let code = 16_320
        static let digest = 16_352
    }

    private static func digest(of bytes: [UInt8]) -> [UInt8] {
        [UInt8](SHA256.hash(data: bytes[..<Offset.digest]))
    }

    private static func rendered(_ content: KeyringContent) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: byteCount)
        bytes.replace(from: 0, with: magic + majorVersion.bigEndianBytes)
        bytes.replace(from: Offset.areaByteCount, with: UInt32(byteCount).bigEndianBytes)
        bytes.replace(from: Offset.generation, with: content.generation.bigEndianBytes)
        bytes.replace(from: Offset.id, with: content.id)
        bytes[Offset.state] = content.state.rawValue
        bytes[Offset.profile] = profiles.first { $0.value.name == content.profile.name }?.key ?? 0
        bytes[Offset.plaintextHeader] = content.plaintextHeaderUnitCount
        bytes.replace(
            from: Offset.pageByteCount, with: UInt32(content.profile.pageByteCount).bigEndianBytes)
        bytes.replace(from: Offset.epoch, with: content.epoch.bigEndianBytes)
        bytes.replace(from: Offset.nextSlotID, with: content.nextSlotID.bigEndianBytes)
        bytes.replace(from: Offset.rootMade, with: content.rootMade.bigEndianBytes)
        bytes.replace(from: Offset.epochMade, with: content.epochMade.bigEndianBytes)
        bytes.replace(from: Offset.highestEpoch, with: content.highestEpoch.bigEndianBytes)
        bytes.replace(from: Offset.formerEpoch, with: content.formerEpoch.bigEndianBytes)
        bytes.replace(from: Offset.formerRoot, with: content.formerRoot)
        bytes.replace(from: Offset.rootBackupCount, with: content.rootBackupCount.bigEndianBytes)
        bytes.replace(from: Offset.lastRootBackup, with: content.lastRootBackup.bigEndianBytes)
        bytes.replace(from: Offset.rootID, with: content.rootID)
        bytes.replace(from: Offset.keyID, with: content.keyID)
        for (index, place) in content.places.enumerated() {
            let offset = Offset.slots + index * KeyringSlot.byteCount
            switch place {
            case .free: break
            case .slot(let slot): bytes.replace(from: offset, with: slot.rendered())
            case .unknown(let slot): bytes.replace(from: offset, with: slot)
            }
        }
        return bytes
    }

    private static func parsed(_ bytes: [UInt8]) throws(StoreError) -> KeyringContent {
        guard bytes.starts(with: magic) else { throw damaged("the file is not a keyring") }
        guard UInt16(bigEndianAt: Offset.majorVersion, of: bytes) == majorVersion else {
            throw newer
        }
        let minorVersion = UInt16(bigEndianAt: Offset.minorVersion, of: bytes)
        if minorVersion == 0 {
            let unnamed = [
                43..<44, 54..<56, Offset.headerEnd..<Offset.slots,
                Offset.slotsEnd..<Offset.code,
            ]
            guard unnamed.allSatisfy({ bytes[$0].allSatisfy { $0 == 0 } }) else {
                throw damaged("a byte without a meaning is not zero")
            }
        }
        let pageByteCount = Int(UInt32(bigEndianAt: Offset.pageByteCount, of: bytes))
        guard UInt32(bigEndianAt: Offset.areaByteCount, of: bytes) == UInt32(byteCount),
            let state = KeyringContent.State(rawValue: bytes[Offset.state]),
            let profile = profiles[bytes[Offset.profile]]?.resized(to: pageByteCount),
            [0, 2].contains(bytes[Offset.plaintextHeader])
        else { throw damaged("its header names no format of a database") }
        func field(_ offset: Int, _ count: Int) -> [UInt8] { Array(bytes[offset..<offset + count]) }
        var content = KeyringContent(
            minorVersion: minorVersion,
            generation: UInt64(bigEndianAt: Offset.generation, of: bytes),
            id: field(Offset.id, KeyringContent.idByteCount), state: state, profile: profile,
            plaintextHeaderUnitCount: bytes[Offset.plaintextHeader],
            epoch: UInt32(bigEndianAt: Offset.epoch, of: bytes),
            highestEpoch: UInt32(bigEndianAt: Offset.highestEpoch, of: bytes),
            nextSlotID: UInt16(bigEndianAt: Offset.nextSlotID, of: bytes),
            rootMade: Int64(bigEndianAt: Offset.rootMade, of: bytes),
            epochMade: Int64(bigEndianAt: Offset.epochMade, of: bytes),
            formerEpoch: UInt32(bigEndianAt: Offset.formerEpoch, of: bytes),
            formerRoot: field(Offset.formerRoot, KeyringContent.formerRootByteCount),
            rootBackupCount: UInt32(bigEndianAt: Offset.rootBackupCount, of: bytes),
            lastRootBackup: Int64(bigEndianAt: Offset.lastRootBackup, of: bytes),
            rootID: field(Offset.rootID, KeyringContent.idByteCount),
            keyID: field(Offset.keyID, KeyID.byteCount))
        content.places = try places(bytes, isOfThisVersion: minorVersion == 0)
        try check(content)
        return content
    }

    private static func places(
        _ bytes: [UInt8], isOfThisVersion: Bool
    ) throws(StoreError) -> [KeyringContent.Place] {
        var places: [KeyringContent.Place] = []
        for index in 0..<KeyringContent.placeCount {
            let offset = Offset.slots + index * KeyringSlot.byteCount
            let stored = Array(bytes[offset..<offset + KeyringSlot.byteCount])
            if stored[0] == 0 {
                guard stored.allSatisfy({ $0 == 0 }) else {
                    throw damaged("a free place for a slot is not empty")
                }
                places.append(.free)
            } else if KeyringSlot.Kind(rawValue: stored[0]) == nil {
                places.append(.unknown(stored))
            } else if let slot = KeyringSlot(stored: stored) {
                places.append(.slot(slot))
            } else if isOfThisVersion {
                throw damaged("slot \(UInt16(bigEndianAt: 2, of: stored)) has a field out of range")
            } else {
                places.append(.unknown(stored))
            }
        }
        return places
    }

    private static func check(_ content: KeyringContent) throws(StoreError) {
        let ids = content.slots.map(\.id)
        guard Set(ids).count == ids.count, ids.allSatisfy({ $0 > 0 && $0 < content.nextSlotID })
        else { throw damaged("two slots have one number, or a slot has a number not yet given") }
        guard content.epoch > 0, content.epoch <= content.highestEpoch,
            max(content.highestEpoch, content.formerEpoch) <= KeyringContent.maximumEpoch
        else { throw damaged("its epoch is not between 1 and the highest") }
        guard content.generation < 1 << 63 else {
            throw damaged("its generation is higher than any number of writes")
        }
        let count = content.derivationCount
        guard count <= KeyringContent.maximumDerivationCount else {
            throw StoreError(
                .tooCostly, "the keyring asks for \(count) derivations of one passphrase",
                hint: "Somebody has changed the keyring: restore it from a backup.")
        }
    }

    static func damaged(_ reason: String) -> StoreError {
        StoreError(
            .keyringDamaged, "the keyring is damaged: \(reason)",
            hint: "Restore the keyring from a backup. The database itself may be sound.")
    }

    private static let newer = StoreError(
        .needsNewerProgram, "a later version of Coffer has written this keyring",
        hint: "Update this program.")
}
