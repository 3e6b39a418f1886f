import Crypto
import Foundation
import Testing

@testable import Coffer

/// Keyrings that somebody has changed, and those that this version writes.
@Suite(.againstHanging, .onOwnThreads) struct KeyringAreaTests {
    private let bytes: [UInt8]

    init() throws {
        bytes = try KeyringFixture.bytes()
    }

    @Test func `a flipped bit anywhere breaks the digest`() throws {
        var opened: [Int] = []
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            let error = #expect(throws: StoreError.self) { try KeyringArea(stored: changed) }
            if error?.code != .keyringDamaged { opened.append(index) }
        }
        #expect(opened == [])
    }

    @Test func `a flipped bit whose digest is mended never opens`() throws {
        var codes: [StoreError.Code: [Int]] = [:]
        for index in 0..<16_352 {
            var changed = bytes
            changed[index] ^= 1
            let code: StoreError.Code
            do {
                _ = try KeyringArea(stored: withDigest(changed)).open(.keyFile)
                Issue.record("opened with a flipped bit in byte \(index)")
                continue
            } catch {
                code = try #require(error as? StoreError).code
            }
            codes[code, default: []].append(index)
        }
        // The slot of the key file is the second, from byte 1536 on. Its kind, and what its key and
        // its commitment depend on, decide whether the credential is its own.
        let ownSlot = [1536] + (1576..<1640)
        #expect(codes[.wrongKey] == ownSlot)
        #expect(codes[.needsNewerProgram] == [8, 9])
        #expect(Set(codes.keys) == [.wrongKey, .needsNewerProgram, .keyringDamaged])
    }

    @Test func `another credential does not open, and says wrong key`() throws {
        let area = try KeyringArea(stored: bytes)
        for kind in KeyringFixture.kinds {
            var secret = plainBytes(try KeyringFixture.credential(kind).secret)
            secret[3] ^= 1
            // The lowest bits of a private key do not count.
            let other = KeyCredential(kind: kind, secret: KeyVectors.secret(secret))
            let error = #expect(throws: StoreError.self) {
                _ = try area.unlocked(by: other, memoryMax: KeyringFixture.memoryMax).slotID
            }
            #expect(error?.code == .wrongKey, "\(kind)")
        }
    }

    @Test func `an external secret opens the slot that it is for, and no other`() throws {
        let area = try KeyringArea(stored: bytes)
        let own = try KeyringFixture.credential(.external)
        let other = KeyCredential(kind: .external, secret: own.secret.copy(), slotID: 3)
        let error = #expect(throws: StoreError.self) {
            _ = try area.unlocked(by: other, memoryMax: KeyringFixture.memoryMax).slotID
        }
        #expect(error?.code == .wrongKey)
    }

    @Test func `a slot of an older area is not taken into a newer one`() throws {
        let root = try KeyringFixture.root()
        let old = try KeyringArea(stored: bytes)
        var content = old.content
        content.places[1] = .free
        content.generation += 1
        var spliced = try KeyringArea(content, under: root).bytes
        spliced.replaceSubrange(1536..<2560, with: bytes[1536..<2560])
        let error = #expect(throws: StoreError.self) {
            _ = try KeyringArea(stored: withDigest(spliced)).open(.keyFile)
        }
        #expect(error?.code == .keyringDamaged)
    }

    @Test(
        arguments: [(19, 1), (13, 1), (17, 0), (17, 17), (18, 3), (255, 255)] as [(UInt8, UInt8)])
    func `a cost out of bounds is refused before it is paid`(
        _ log2N: UInt8, _ parallelism: UInt8
    ) throws {
        var changed = bytes
        (changed[517], changed[519]) = (log2N, parallelism)
        let area = try KeyringArea(stored: withDigest(changed))
        let error = #expect(throws: StoreError.self) { _ = try area.open(.passphrase) }
        #expect(error?.code == .tooCostly)
    }

    @Test func `a derivation takes no more memory than is allowed`() throws {
        let area = try KeyringArea(stored: bytes)
        #expect(KeyCost(log2N: 14, parallelism: 1).memoryByteCount == 16 << 20)
        #expect(KeyCost.standard.memoryByteCount == 128 << 20)
        #expect(try area.open(.passphrase, memoryMax: 16 << 20).slotID == 1)
        let error = #expect(throws: StoreError.self) {
            _ = try area.open(.passphrase, memoryMax: (16 << 20) - 1)
        }
        #expect(error?.code == .tooCostly)
        #expect(try area.open(.keyFile, memoryMax: 0).slotID == 2)
    }

    @Test func `passphrases that need three derivations are refused`() throws {
        let root = try KeyringFixture.root()
        var content = try KeyringArea(stored: bytes).content
        for count in 2...3 {
            content.places[4 + count] = .slot(
                passphraseSlot(id: content.nextSlotID, salt: UInt8(count)))
            content.nextSlotID += 1
            let area = try KeyringArea(content, under: root)
            if count == 2 {
                #expect(throws: Never.self) { try KeyringArea(stored: area.bytes) }
            } else {
                let error = #expect(throws: StoreError.self) { try KeyringArea(stored: area.bytes) }
                #expect(error?.code == .tooCostly)
            }
        }
    }

    @Test func `what this version writes it reads`() throws {
        let root = RootKey.random()
        let identity = Curve25519.KeyAgreement.PrivateKey()
        let id = [UInt8].random(byteCount: 16)
        let dataKey = root.dataKey(epoch: KeyringContent.maximumEpoch, id: id)
        var content = KeyringContent(
            generation: 1 << 63 - 1, id: id, state: .isBeingEnabled,
            profile: try CipherProfile.sqlcipher4.with(pageByteCount: 65_536),
            epoch: KeyringContent.maximumEpoch,
            highestEpoch: KeyringContent.maximumEpoch, nextSlotID: .max, rootMade: .min,
            epochMade: .max,
            formerEpoch: 17, formerRoot: .random(byteCount: 60), rootBackupCount: .max,
            lastRootBackup: .max, rootID: root.id(for: id), keyID: dataKey.id().bytes)
        var slot = KeyringSlot(
            kind: .recipient, id: .max - 1, cost: nil,
            derivationSalt: [UInt8](repeating: 0, count: 32),
            slotSalt: [UInt8](repeating: 0, count: 32), made: .min, changed: .max,
            label: try SlotLabel(String(repeating: "é", count: 59)),
            blob: [UInt8](identity.publicKey.rawRepresentation))
        try slot.wrap(root, id: content.id)
        content.places[14] = .slot(slot)
        let area = try KeyringArea(content, under: root)
        let read = try KeyringArea(stored: area.bytes)
        #expect(read == area)
        #expect(read.content == content)
        let credential = KeyCredential(
            kind: .recipient, secret: KeyVectors.secret([UInt8](identity.rawRepresentation)))
        let unlocked = try read.unlocked(by: credential, memoryMax: 0)
        #expect(plainBytes(unlocked.root.bytes) == plainBytes(root.bytes))
        let isOthers = area.isAuthentic(under: RootKey.random())
        #expect(!isOthers)
    }

    @Test func `a slot of an unknown kind is kept byte for byte`() throws {
        var changed = bytes
        changed.replace(from: 6656, with: [9, 1, 2, 3, 255])
        let root = try KeyringFixture.root()
        let content = try KeyringArea(stored: withDigest(changed)).content
        let written = try KeyringArea(content, under: root)
        #expect(written.bytes[6656..<7680] == changed[6656..<7680])
        #expect(try KeyringArea(stored: written.bytes).open(.keyFile).slotID == 2)
    }

    @Test func `a keyring of a later minor version is read and not written`() throws {
        let root = try KeyringFixture.root()
        var changed = bytes
        (changed[11], changed[300]) = (1, 7)
        changed.replace(from: 16_320, with: root.authenticationCode(for: changed[..<16_320]))
        let area = try KeyringArea(stored: withDigest(changed))
        #expect(try area.open(.keyFile).slotID == 2)
        let error = #expect(throws: StoreError.self) { try KeyringArea(area.content, under: root) }
        #expect(error?.code == .needsNewerProgram)
    }

    @Test func `the header's fields are checked beyond their MAC`() throws {
        let root = try KeyringFixture.root()
        let cases: [(String, (inout [UInt8]) -> Void)] = [
            ("a byte without a meaning", { $0[400] = 1 }),
            ("an epoch of 0", { $0[51] = 0 }),
            ("an epoch above the highest", { $0[51] = 10 }),
            ("an epoch that no clock makes", { $0[73] = 0x11 }),
            ("a generation that no number of writes makes", { $0[16] = 0x80 }),
            ("a slot number given twice", { $0[512 + 1024 + 3] = 1 }),
            ("a slot number not yet given", { $0[512 + 1024 + 3] = 6 }),
            ("a page size of 0", { $0[46] = 0 }),
            ("a page size of 512", { $0[46] = 2 }),
            ("an unknown profile", { $0[41] = 4 }),
            ("an unknown state", { $0[40] = 3 }),
            ("a plaintext header of 16 bytes", { $0[42] = 1 }),
            ("a place that is free and not empty", { $0[512 + 1024 * 9 + 700] = 1 }),
            ("a label longer than its field", { $0[512 + 201] = 119 }),
            ("a label that is not UTF-8", { $0[512 + 202] = 0xff }),
            ("a label with a line end", { $0[512 + 202] = 10 }),
            ("a key file with a blob", { $0[512 + 1024 + 321] = 1 }),
            ("a key file with a cost", { $0[512 + 1024 + 4] = 1 }),
            ("a passphrase without a derivation", { $0[512 + 4] = 0 }),
            ("a passphrase with another block size", { $0[512 + 6] = 16 }),
        ]
        for (name, change) in cases {
            var changed = bytes
            change(&changed)
            changed.replace(from: 16_320, with: root.authenticationCode(for: changed[..<16_320]))
            let error = #expect(throws: StoreError.self, "\(name)") {
                try KeyringArea(stored: withDigest(changed))
            }
            #expect(error?.code == .keyringDamaged, "\(name)")
        }
        #expect(throws: StoreError.self) { try KeyringArea(stored: Array(bytes.dropLast())) }
        #expect(throws: StoreError.self) { try KeyringArea(stored: []) }
    }

    private func passphraseSlot(id: UInt16, salt: UInt8) -> KeyringSlot {
        KeyringSlot(
            kind: .passphrase, id: id, cost: .standard,
            derivationSalt: [UInt8](repeating: salt, count: 32),
            slotSalt: .random(byteCount: 32), made: 0, changed: 0,
            label: KeyringFixture.noLabel)
    }

    /// The bytes with the digest that fits them, as an attacker would write it.
    private func withDigest(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        bytes.replace(from: 16_352, with: [UInt8](SHA256.hash(data: bytes[..<16_352])))
        return bytes
    }
}

extension KeyringFixture {
    fileprivate static var noLabel: SlotLabel {
        guard let label = SlotLabel(stored: []) else { preconditionFailure("an empty label") }
        return label
    }
}
