import Crypto
import Foundation
import Testing
import Workload

@testable import Coffer

/// `replaceRootKey`: a store gets a new root key, and the slots that stay open it.
@Suite(.againstHanging, .onOwnThreads) struct RootReplacementTests {
    private let folder: TemporaryFolder
    private let path: String
    private let identity = Curve25519.KeyAgreement.PrivateKey()
    private let unwrapped = Shared([UInt8]())
    /// Called before each write of an area of the keyring.
    private let willWriteKeyring = Shared<@Sendable () -> StoreError?>({ nil })
    private static let file = [UInt8](repeating: 42, count: 32)
    private static let otherFile = [UInt8](repeating: 43, count: 32)
    private static let cheap = KeyCost(log2N: 14, parallelism: 1)
    private static let text = "open sesame"

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// A store with 200 rows and five slots: two key files, a passphrase, a recipient, and an
    /// external secret.
    private func make(
        _ journalMode: Configuration.JournalMode = .wal,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        let store = try open(.keyFile(Self.file), journalMode, mode: .createIfMissing, change)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v BLOB)")
            for _ in 0..<200 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        try store.keys.add(.keyFile(Self.otherFile), label: "second")
        try store.keys.add(.passphrase(Self.text), label: "ops", cost: Self.cheap)
        try store.keys.add(.recipient(identity.publicKey.rawRepresentation), label: "billing")
        try store.keys.add(.external(wrap), label: "kms")
        return store
    }

    private var wrap: NewSlot.Wrap {
        { [unwrapped] secret in
            unwrapped.value = Array(secret)
            return secret.map { $0 ^ 0x5a }
        }
    }

    private func open(
        _ credential: borrowing KeyCredential, _ journalMode: Configuration.JournalMode = .wal,
        mode: OpenMode = .mustExist, _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = Configuration.testing(journalMode).early
        configuration.keyringWillStep = { [willWriteKeyring] step, _ throws(StoreError) in
            guard case .write = step, let failure = willWriteKeyring.value() else { return }
            throw failure
        }
        change(&configuration)
        return try Store(
            path: path, key: .keyring(credential), mode: mode, configuration: configuration)
    }

    /// The error of opening the store by a credential, and reading it; `nil` if there is none.
    private func refusal(_ credential: borrowing KeyCredential) -> StoreError.Code? {
        do {
            let store = try open(credential)
            defer { try? store.close() }
            return try count(store) == 200 ? nil : .damaged
        } catch {
            return (error as? StoreError)?.code
        }
    }

    private func count(_ store: Store) throws -> Int {
        try store.read { tx in try tx.firstRow("SELECT count(*) FROM t")?.get(0) ?? -1 }
    }

    private func keepAll(_ plan: inout RootKeyPlan) throws {
        try plan.keep(2, .keyFile(Self.otherFile))
        try plan.keep(3, .passphrase(Self.text))
        try plan.keep(5, .external(unwrapped.value, slot: 5))
    }

    private func rootKey() throws -> KeyBox<RootKey> {
        let areas = try #require(try KeyringFile(of: try FileLocation(path)).areas())
        let unlocked = try areas.unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        return KeyBox(unlocked.root.copy())
    }

    private var bytes: Data {
        get throws { try Data(contentsOf: URL(filePath: path + ".keyring")) }
    }

    /// Leaves a replacement half done: the keyring has the new root, and a writer of another
    /// connection keeps the pages from getting the new key.
    private func begin(
        _ store: Store, _ journalMode: Configuration.JournalMode, dropping ids: [KeySlot.ID] = []
    ) throws {
        let key = try #require(store.core.pool.file).cipher.key.storeKey()
        let other = try Connection(
            path: path, key: key, mode: .mustExist, configuration: .testing(journalMode))
        // Once the keyring gets its new root.
        nonisolated(unsafe) let writer = other
        willWriteKeyring.value = {
            _ = try? writer.execute("BEGIN IMMEDIATE")
            return nil
        }
        let error = expect(.busy) {
            try store.replaceRootKey(dropping: ids) { plan in
                for slot in plan.slots where !ids.contains(slot.id) {
                    switch slot.id {
                    case 2: try plan.keep(2, .keyFile(Self.otherFile))
                    case 3: try plan.keep(3, .passphrase(Self.text))
                    case 5: try plan.keep(5, .external(unwrapped.value, slot: 5))
                    default: break
                    }
                }
            }
        }
        #expect(error?.message.contains("has the new root") == true)
        willWriteKeyring.value = { nil }
        try other.execute("ROLLBACK")
        other.close()
        #expect(try Keyring(of: path).isReplacingRoot)
    }

    private func impatient(_ configuration: inout Configuration) {
        configuration.busyTimeout = .milliseconds(1)
        configuration.rotationTimeout = .milliseconds(100)
    }

    // MARK: The new root

    @Test(arguments: journalModes)
    func `every slot that stays opens the store, and the former root opens nothing`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode)
        try store.keys.withRootBackup { _ in }
        let (before, former) = (try store.keys.keyring, try rootKey())
        try store.keys.backUp(to: folder.path("former.keyring"))
        let report = try store.replaceRootKey(keeping: keepAll)
        let after = try store.keys.keyring
        #expect(report.isFinished && report.isNewRoot)
        #expect(report.oldRootID == before.rootID && report.rootID == after.rootID)
        #expect(report.oldKeyID == before.keyID && report.keyID == after.keyID)
        #expect(after.epoch == report.epoch && after.epoch > before.epoch)
        #expect(before.rootBackups.count == 1 && after.rootBackups.count == 0)
        #expect(!after.isReplacingRoot && after.isWhole)
        #expect(after.slots.map(\.id) == [1, 2, 3, 4, 5])
        #expect(after.slots.map(\.label) == before.slots.map(\.label))
        #expect(after.slots.map(\.changed) == before.slots.map(\.changed))
        #expect(try count(store) == 200)
        #expect(try store.verify().isGood)
        try store.close()
        #expect(refusal(.keyFile(Self.file)) == nil)
        #expect(refusal(.keyFile(Self.otherFile)) == nil)
        #expect(refusal(.passphrase(Self.text)) == nil)
        #expect(refusal(.identity(identity.rawRepresentation)) == nil)
        #expect(refusal(.external(unwrapped.value, slot: 5)) == nil)
        let id = try KeyVectors.bytes(hex: after.storeID)
        for epoch in [1, UInt32(report.epoch)] {
            let key = former.key.dataKey(epoch: epoch, id: id).storeKey()
            expect(.wrongKey) { try Connection(path: path, key: key, mode: .mustExist) }
        }
        // A copy of the former keyring opens it no longer.
        let keyring = URL(filePath: path + ".keyring")
        try FileManager.default.removeItem(at: keyring)
        try FileManager.default.copyItem(
            at: URL(filePath: folder.path("former.keyring")), to: keyring)
        #expect(refusal(.keyFile(Self.file)) == .keyringMismatch)
    }

    @Test func `a dropped credential opens the store no longer, and the others do`() throws {
        let store = try make()
        try store.replaceRootKey(dropping: [3, 5]) { plan in
            try plan.keep(2, .keyFile(Self.otherFile))
        }
        #expect(try store.keys.slots.map(\.id) == [1, 2, 4])
        try store.close()
        #expect(refusal(.passphrase(Self.text)) == .wrongKey)
        #expect(refusal(.external(unwrapped.value, slot: 5)) == .wrongKey)
        #expect(refusal(.keyFile(Self.otherFile)) == nil)
        #expect(refusal(.identity(identity.rawRepresentation)) == nil)
    }

    @Test func `an external slot gets a new secret, and the former one is out`() throws {
        let store = try make()
        let former = unwrapped.value
        try store.replaceRootKey(dropping: [2, 3]) { plan in try plan.keep(5, wrap: wrap) }
        #expect(unwrapped.value != former)
        #expect(try Keyring(of: path).blob(of: 5) == unwrapped.value.map { $0 ^ 0x5a })
        try store.close()
        #expect(refusal(.external(former, slot: 5)) == .wrongKey)
        #expect(refusal(.external(unwrapped.value, slot: 5)) == nil)
    }

    @Test func `the slot that opened the store may be dropped`() async throws {
        let store = try make()
        try await store.replaceRootKey(dropping: [1, 2, 3, 5])
        #expect(try await store.read { tx in try tx.rows("SELECT v FROM t").count } == 200)
        try await store.rotate()
        try await store.close()
        #expect(refusal(.keyFile(Self.file)) == .wrongKey)
        #expect(refusal(.identity(identity.rawRepresentation)) == nil)
    }

    @Test func `the slot of this store stays after its credential was changed`() throws {
        let store = try make()
        try store.keys.change(1, to: .passphrase("new"), cost: Self.cheap)
        try store.replaceRootKey(dropping: [2, 3, 5])
        try store.close()
        #expect(refusal(.passphrase("new")) == nil)
        #expect(refusal(.keyFile(Self.file)) == .wrongKey)
    }

    // MARK: Refusals

    @Test func `a slot that is neither kept nor dropped is named, and nothing is written`() throws {
        let store = try make()
        let (before, keyID) = (try bytes, try store.keyID())
        let error = expect(.misuse) {
            try store.replaceRootKey { plan in try plan.keep(2, .keyFile(Self.otherFile)) }
        }
        #expect(error?.message.contains("slot 3 (passphrase ops)") == true)
        expect(.wrongKey) {
            try store.replaceRootKey { plan in try plan.keep(3, .passphrase("other")) }
        }
        expect(.wrongKey) {
            try store.replaceRootKey { plan in try plan.keep(3, .keyFile(Self.file)) }
        }
        expect(.misuse) { try store.replaceRootKey { plan in try plan.keep(3, wrap: wrap) } }
        expect(.notFound) { try store.replaceRootKey(dropping: [6]) }
        expect(.notFound) {
            try store.replaceRootKey { plan in try plan.keep(6, .passphrase("x")) }
        }
        expect(.lastSlot) { try store.replaceRootKey(dropping: [1, 2, 3, 4, 5]) }
        try store.keys.lock()
        expect(.misuse) { try store.replaceRootKey(dropping: [2, 3, 5]) }
        #expect(try bytes == before)
        #expect(try store.keyID() == keyID)
        try store.close()
    }

    @Test func `a slot that is removed meanwhile does not leave the keyring without one`() throws {
        let store = try make()
        let rootID = try Keyring(of: path).rootID
        expect(.lastSlot) {
            try store.replaceRootKey(
                dropping: [1, 2, 3, 5],
                progress: { progress in
                    if progress.phase == .rotating { try? store.keys.remove(4) }
                })
        }
        #expect(try store.keys.slots.map(\.id) == [1, 2, 3, 5])
        #expect(try store.keys.keyring.rootID == rootID)
        try store.close()
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a file with two names keeps its root`() throws {
        let store = try make()
        let before = try bytes
        try FileManager.default.linkItem(atPath: path, toPath: folder.path("second.db"))
        expect(.readOnly) { try store.replaceRootKey(dropping: [2, 3, 5]) }
        #expect(try bytes == before)
        try FileManager.default.removeItem(atPath: folder.path("second.db"))
        #expect(try store.replaceRootKey(dropping: [2, 3, 5]).isFinished)
        try store.close()
    }

    @Test func `an earlier keyring that is put back does not take the root from an open store`()
        throws
    {
        let store = try make()
        try store.keys.backUp(to: folder.path("former.keyring"))
        try store.replaceRootKey(dropping: [2, 3, 5])
        let keyring = URL(filePath: path + ".keyring")
        try Data(contentsOf: URL(filePath: folder.path("former.keyring"))).write(to: keyring)
        expect(.keyringMismatch) { try store.keys.slots }
        expect(.keyringMismatch) { try store.rotate() }
        expect(.keyringMismatch) { try store.replaceRootKey(dropping: [2, 3, 5]) }
        expect(.keyringMismatch) { try store.keys.unlock(.keyFile(Self.file)) }
        #expect(try count(store) == 200)
        try store.keys.backUp(to: folder.path("saved.keyring"))
        try store.close()
        #expect(refusal(.keyFile(Self.file)) == .keyringMismatch)
        try Data(contentsOf: URL(filePath: folder.path("saved.keyring"))).write(to: keyring)
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a pause beyond the limit leaves the root as it was`() throws {
        let store = try make()
        let before = try bytes
        expect(.tooBig) {
            try store.replaceRootKey(dropping: [2, 3, 5], maximumPause: .nanoseconds(1))
        }
        #expect(try bytes == before)
        try store.close()
    }

    // MARK: Interruptions

    @Test(arguments: journalModes)
    func `a replacement that ended before the pages were written is finished by a rotation`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode, impatient)
        try begin(store, journalMode, dropping: [])
        #expect(try count(store) == 200)
        try store.write { tx in try tx.execute("UPDATE t SET v = v") }
        try store.backup(to: folder.path("copy.db"))
        try store.close()
        for credential in [
            KeyBox(KeyCredential.keyFile(Self.otherFile)),
            KeyBox(KeyCredential.identity(identity.rawRepresentation)),
        ] {
            #expect(refusal(credential.key) == nil)
        }
        let copy = try Store(
            path: folder.path("copy.db"), key: .keyring(.passphrase(Self.text)), mode: .mustExist,
            configuration: .testing(journalMode))
        #expect(try count(copy) == 200)
        try copy.close()
        let again = try open(.passphrase(Self.text), journalMode)
        #expect(try again.keys.keyring.isReplacingRoot)
        let report = try again.rotate()
        #expect(report.isFinished && report.isNewRoot)
        #expect(try !again.keys.keyring.isReplacingRoot)
        #expect(try again.keys.keyring.keyID == again.keyID())
        #expect(try count(again) == 200)
        #expect(try again.verify().isGood)
        try again.close()
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a replacement that is called again finishes, though its slots are gone`() throws {
        let store = try make(.wal, impatient)
        try begin(store, .wal, dropping: [3])
        let rootID = try Keyring(of: path).rootID
        let report = try store.replaceRootKey(dropping: [3])
        #expect(report.isFinished && report.rootID == rootID)
        // If a slot to drop still exists, the call replaces the root once more.
        try begin(store, .wal)
        let next = try store.replaceRootKey(dropping: [5]) { plan in
            try plan.keep(2, .keyFile(Self.otherFile))
        }
        #expect(next.isFinished && next.isNewRoot)
        #expect(try store.keys.slots.map(\.id) == [1, 2, 4])
        try store.close()
        #expect(refusal(.external(unwrapped.value, slot: 5)) == .wrongKey)
    }

    @Test(arguments: journalModes)
    func `the opening ends a replacement that was not recorded`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try make(journalMode)
        let writeCount = Shared(0)
        willWriteKeyring.value = {
            writeCount.update { $0 += 1 }
            // The new root takes the first two.
            return writeCount.value > 2 ? StoreError(.full, "the test's disk is full") : nil
        }
        let report = try store.replaceRootKey(dropping: [2, 3, 5])
        #expect(report.recordFailure?.code == .full && report.isNewRoot && !report.isFinished)
        #expect(try Keyring(of: path).isReplacingRoot)
        #expect(try count(store) == 200)
        willWriteKeyring.value = { nil }
        try store.close()
        #expect(refusal(.identity(identity.rawRepresentation)) == nil)
        #expect(try !Keyring(of: path).isReplacingRoot)
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a file that was put back from before the replacement does not open`() throws {
        try make(.delete).close()
        let before = try Data(contentsOf: URL(filePath: path))
        let store = try open(.keyFile(Self.file), .delete)
        try store.replaceRootKey(dropping: [2, 3, 5])
        try store.close()
        try before.write(to: URL(filePath: path))
        #expect(refusal(.keyFile(Self.file)) == .keyringMismatch)
    }

    @Test func `rows are salvaged from a store between two roots`() throws {
        let store = try make(.delete, impatient)
        try begin(store, .delete)
        try store.close()
        try Damage.flip(path, at: 5 * Keyring(of: path).profile.pageByteCount + 100)
        _ = try Store.salvage(
            damagedAt: path, key: .keyring(.keyFile(Self.file)), to: folder.path("saved.db"),
            newKey: .numbered(1))
        let saved = try Store(
            path: folder.path("saved.db"), key: .numbered(1), mode: .mustExist)
        #expect(try count(saved) > 0)
        try saved.close()
    }

    // MARK: Another process

    private static let openings = [0, 1, 2]

    /// Opens the store by a slot that the other process keeps.
    private func openKept(_ index: Int) throws -> Store {
        switch index {
        case 0: try open(.keyFile(Self.file))
        case 1: try open(.passphrase(Self.text))
        default: try open(.identity(identity.rawRepresentation))
        }
    }

    @Test(arguments: openings)
    func `a store that is open by a slot that stays goes on`(index: Int) throws {
        try make().close()
        let store = try openKept(index)
        #expect(try count(store) == 200)
        let lines = try Peer.run(["replace-root", path, "wal", "2,5"])
        #expect(lines.count == 1)
        try store.write { tx in try tx.execute("UPDATE t SET v = v") }
        #expect(try count(store) == 200)
        #expect(try store.keys.keyring.rootID == lines.first)
        try store.keys.add(.keyFile(Self.otherFile), label: "back")
        #expect(try store.rotate().isFinished)
        let next = try Peer.run(["replace-root", path, "wal", "6"])
        // Only a recipient needs a read first: everybody can make a keyring for a public key.
        if index == 2 { #expect(try count(store) == 200) }
        #expect(try store.keys.slots.map(\.id) == [1, 3, 4])
        #expect(try store.rotate().rootID == next.first)
        try store.close()
        #expect(refusal(.passphrase(Self.text)) == nil)
    }

    @Test func `a store that is open by a dropped slot ends, and says how to go on`() throws {
        try make().close()
        let store = try open(.keyFile(Self.otherFile))
        #expect(try count(store) == 200)
        _ = try Peer.run(["replace-root", path, "wal", "2,5"])
        let error = expect(.wrongKey) { try count(store) }
        #expect(error?.hint?.contains("without the slot") == true)
        expect(.wrongKey) { try store.write { tx in try tx.execute("DELETE FROM t") } }
        expect(.keyringMismatch) { try store.keys.add(.keyFile(Self.file), label: "") }
        try store.reopen(with: .keyring(.passphrase(Self.text)))
        #expect(try count(store) == 200)
        try store.close()
    }

    @Test func `a root that a stranger sealed for a recipient does not become the store's`() throws
    {
        let made = try make()
        try made.close()
        let store = try open(.identity(identity.rawRepresentation))
        #expect(try count(store) == 200)
        let foreign = RootKey.random()
        var content = KeyringContent(
            new: foreign, id: try KeyVectors.bytes(hex: Keyring(of: path).storeID),
            profile: store.profile, state: .isInUse, now: 1)
        let slot = try PreparedSlot(
            .recipient(identity.publicKey.rawRepresentation), label: SlotLabel("x"),
            cost: .standard, memoryMax: KeyringFixture.memoryMax, for: content)
        _ = try content.add(slot, under: foreign, now: 1)
        content.name(100_000, under: foreign, now: 1)
        let area = try KeyringArea(content, under: foreign)
        _ = try KeyringFile(of: try FileLocation(path)).replace(timeout: .seconds(1)) { area }
        let keyID = try store.keyID()
        expect(.keyringMismatch) { try store.rotate() }
        expect(.keyringMismatch) { try store.keys.unlock(.identity(identity.rawRepresentation)) }
        expect(.keyringMismatch) { try store.keys.add(.keyFile(Self.file), label: "") }
        #expect(try store.keyID() == keyID)
        #expect(try count(store) == 200)
        try store.close()
    }
}

/// The former root in a keyring.
@Suite struct FormerRootTests {
    private static let nonce = [UInt8](repeating: 7, count: 12)

    private func content() throws -> KeyringContent {
        var content = try KeyringFixture.area().content
        try content.keep(
            former: RootKey(bytes: KeyVectors.secret([UInt8](repeating: 9, count: 32))), epoch: 5,
            under: KeyringFixture.root(), nonce: Self.nonce)
        return content
    }

    @Test func `it comes back, and is forgotten`() throws {
        var content = try content()
        #expect(content.hasFormerRoot && content.formerRoot.count == 60)
        let former = try content.formerRoot(under: KeyringFixture.root())
        guard let former else { throw CocoaError(.featureUnsupported) }
        #expect(plainBytes(former.bytes) == [UInt8](repeating: 9, count: 32))
        let area = try KeyringArea(content, under: KeyringFixture.root())
        #expect(try KeyringArea(stored: area.bytes).content == content)
        content.forgetFormerRoot()
        #expect(!content.hasFormerRoot)
        #expect(try KeyringArea(stored: KeyringFixture.bytes()).content == content)
    }

    @Test func `it does not open under another root, in another epoch or with a flipped bit`()
        throws
    {
        let stored = try content()
        func code(_ content: KeyringContent, _ root: borrowing RootKey) -> StoreError.Code? {
            do throws(StoreError) {
                _ = try content.formerRoot(under: root)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try code(stored, KeyringFixture.root()) == nil)
        #expect(code(stored, .random()) == .keyringDamaged)
        var other = stored
        other.formerEpoch = 6
        #expect(try code(other, KeyringFixture.root()) == .keyringDamaged)
        for index in stored.formerRoot.indices {
            var flipped = stored
            flipped.formerRoot[index] ^= 1
            #expect(try code(flipped, KeyringFixture.root()) == .keyringDamaged)
        }
    }
}
