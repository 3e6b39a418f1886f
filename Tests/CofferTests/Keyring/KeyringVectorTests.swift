import Foundation
import Testing

@testable import Coffer

/// The bytes that a program without any code of Coffer reads and writes too.
@Suite(.againstHanging, .onOwnThreads) struct KeyringVectorTests {
    private let vectors: KeyringFixture.Vectors
    private let area: KeyringArea

    init() throws {
        vectors = try KeyringFixture.vectors()
        area = try KeyringFixture.area()
    }

    @Test func `an area means what the program that wrote it says`() throws {
        let content = area.content
        #expect(content.generation == 42)
        #expect(content.id == (try KeyVectors.bytes(hex: vectors.id)))
        #expect(content.state == .isInUse)
        #expect(content.profile == .portable)
        #expect((content.epoch, content.highestEpoch) == (7, 9))
        #expect((content.rootMade, content.epochMade) == (1_700_000_000, 1_700_000_500))
        #expect((content.rootBackupCount, content.lastRootBackup) == (3, 1_700_000_900))
        #expect(content.nextSlotID == 6)
        #expect(content.slots.map(\.kind) == KeyringFixture.kinds)
        #expect(content.slots.map(\.id) == [1, 2, 3, 4, 5])
        #expect(content.slots.map(\.made) == (1...5).map { 1_700_000_000 + $0 })
        #expect(content.slots.map(\.changed) == (1...5).map { 1_700_000_100 + $0 })
        #expect(
            content.slots.map(\.label.text) == ["ops", "cron", "safe", "kms", "Abrechnung, Büro 🗝"])
        #expect(content.slots[0].cost == KeyCost(log2N: 14, parallelism: 1))
        #expect(content.slots[3].blob == Array(0..<40))
    }

    @Test func `the same content and root give the same bytes`() throws {
        let written = try KeyringArea(area.content, under: KeyringFixture.root())
        #expect(written.bytes == area.bytes)
    }

    @Test(arguments: KeyringFixture.kinds)
    func `a credential of each kind opens it`(_ kind: KeyringSlot.Kind) throws {
        let (root, slotID) = try area.open(kind)
        #expect(root == (try KeyVectors.bytes(hex: vectors.root)))
        #expect(slotID == UInt16(kind.rawValue))
    }

    @Test func `a slot is wrapped to the same bytes`() throws {
        let root = try KeyringFixture.root()
        for stored in area.content.slots where stored.kind != .recipient {
            let credential = try KeyringFixture.credential(stored.kind)
            let secret =
                if let derivation = Derivation(of: stored) {
                    try derivation.secret(of: credential.secret)
                } else { credential.secret.copy() }
            var slot = stored
            slot.commitment = [UInt8](repeating: 0, count: 32)
            slot.wrapped = [UInt8](repeating: 0, count: 60)
            try slot.wrap(
                root, by: secret, id: area.content.id,
                nonce: [UInt8](repeating: 0x30 + UInt8(stored.id), count: 12))
            #expect(slot == stored)
        }
    }

    @Test func `a root gives the same data keys and names`() throws {
        let root = try KeyringFixture.root()
        for (epoch, expected) in vectors.dataKeys {
            let key = root.dataKey(epoch: try #require(UInt32(epoch)), id: area.content.id)
            #expect(plainBytes(key.bytes) == (try KeyVectors.bytes(hex: expected)))
            #expect(key.salt == area.content.id)
        }
        #expect(
            root.dataKey(epoch: vectors.epoch, id: area.content.id).id().description
                == vectors.keyID)
        #expect(root.id(for: area.content.id) == (try KeyVectors.bytes(hex: vectors.rootID)))
        #expect(area.content.rootID == root.id(for: area.content.id))
        #expect(KeyID(bytes: area.content.keyID).description == vectors.keyID)
    }

    @Test func `a passphrase is derived to the same secret`() throws {
        let derivation = try #require(Derivation(of: area.content.slots[0]))
        let credential = try KeyringFixture.credential(.passphrase)
        #expect(
            plainBytes(try derivation.secret(of: credential.secret))
                == (try KeyVectors.bytes(hex: vectors.derived)))
    }

    @Test func `secrets are written in the same letters`() throws {
        let recovery = try KeyringFixture.credential(.recoveryKey)
        #expect(try text(.recoveryKey, recovery.secret) == vectors.recoveryKey)
        #expect(try text(.rootBackup, KeyringFixture.root().bytes) == vectors.rootBackup)
    }

    private func text(_ letters: KeyLetters, _ secret: borrowing SecretBytes) throws -> String {
        letters.withText(of: secret) { String(decoding: $0, as: UTF8.self) }
    }
}
