import Crypto
import Foundation
import Testing

@testable import Coffer

/// The slots of an open store: adding, changing and removing credentials.
@Suite(.againstHanging, .onOwnThreads) struct StoreKeysTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)
    private static let other = [UInt8](repeating: 43, count: 32)
    private static let cheap = KeyCost(log2N: 14, parallelism: 1)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(
        _ credential: borrowing KeyCredential = .keyFile(file), mode: OpenMode = .createIfMissing,
        keepsRoot: Bool = true, _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = Configuration.testing()
        configuration.keyCost = Self.cheap
        change(&configuration)
        return try Store(
            path: path, key: .keyring(credential, keepsRoot: keepsRoot), mode: mode,
            configuration: configuration)
    }

    /// The code of the refusal to open; `nil` if the store opens.
    private func refusal(_ credential: borrowing KeyCredential) -> StoreError.Code? {
        do {
            try open(credential, mode: .mustExist).close()
            return nil
        } catch {
            return (error as? StoreError)?.code
        }
    }

    private var bytes: Data {
        get throws { try Data(contentsOf: URL(filePath: path + ".keyring")) }
    }

    // MARK: Adding

    @Test func `each kind of credential is added, listed and opens the store`() throws {
        let now = Shared(Date(timeIntervalSince1970: 1_800_000_000))
        let store = try open { $0.currentDate = { now.value } }
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        let identity = Curve25519.KeyAgreement.PrivateKey()
        let publicKey = [UInt8](identity.publicKey.rawRepresentation)
        now.value += 60
        try store.keys.add(.passphrase("open sesame"), label: "ops", cost: Self.cheap)
        try store.keys.add(.recipient(publicKey), label: "billing")
        let wrapped = Shared([UInt8]())
        try store.keys.add(
            .external { secret in
                wrapped.value = Array(secret)
                return secret.map { $0 ^ 0x5a }
            }, label: "kms")
        let letters = Shared("")
        try store.keys.addRecoveryKey(label: "safe") { text in
            letters.value = String(decoding: text, as: UTF8.self)
            return Array(letters.value.lowercased().utf8)
        }
        let slots = try store.keys.slots
        #expect(slots.map(\.id) == [1, 2, 3, 4, 5])
        #expect(
            slots.map(\.kind) == [.keyFile, .passphrase, .recipient, .external, .recoveryKey])
        #expect(slots.map(\.label) == ["first", "ops", "billing", "kms", "safe"])
        #expect(slots.map { Int($0.made.timeIntervalSince1970) % 1000 } == [0, 60, 60, 60, 60])
        #expect(slots.map(\.cost) == [nil, Self.cheap, nil, nil, nil])
        #expect(slots.map { $0.fingerprint?.count } == [nil, nil, 16, 16, nil])
        try store.close()

        #expect(refusal(.passphrase("open sesame")) == nil)
        #expect(refusal(.identity([UInt8](identity.rawRepresentation))) == nil)
        #expect(refusal(.external(wrapped.value, slot: 4)) == nil)
        #expect(refusal(.external(wrapped.value, slot: 3)) == .wrongKey)
        #expect(refusal(try .recoveryKey(letters.value)) == nil)
        #expect(refusal(.keyFile(Self.file)) == nil)
        #expect(refusal(.keyFile(wrapped.value)) == .wrongKey)
    }

    @Test func `a credential that a slot has already is refused`() throws {
        let store = try open()
        let publicKey = [UInt8](Curve25519.KeyAgreement.PrivateKey().publicKey.rawRepresentation)
        try store.keys.add(.passphrase("a"), label: "", cost: Self.cheap)
        try store.keys.add(.recipient(publicKey), label: "")
        let before = try bytes
        expect(.alreadyExists) { try store.keys.add(.passphrase("a"), label: "", cost: Self.cheap) }
        expect(.alreadyExists) { try store.keys.add(.keyFile(Self.file), label: "") }
        expect(.alreadyExists) { try store.keys.add(.recipient(publicKey), label: "") }
        expect(.alreadyExists) { try store.keys.change(2, to: .keyFile(Self.file)) }
        let same = expect(.alreadyExists) {
            try store.keys.change(2, to: .passphrase("a"), cost: Self.cheap)
        }
        #expect(same?.hint?.contains("Give it another credential") == true)
        expect(.alreadyExists) { try store.keys.change(1, to: .keyFile(Self.file)) }
        expect(.alreadyExists) { try store.keys.change(3, to: .recipient(publicKey)) }
        #expect(try bytes == before)
        try store.close()
    }

    @Test func `a sixteenth slot is refused, and a removed one makes room`() throws {
        let store = try open()
        for number in 2...15 as ClosedRange<UInt8> {
            try store.keys.add(
                .keyFile([UInt8](repeating: 100 + number, count: 32)), label: "\(number)")
        }
        expect(.tooBig) { try store.keys.add(.keyFile(Self.other), label: "") }
        // No place is needed for a credential that has one.
        let last = NewSlot.keyFile([UInt8](repeating: 115, count: 32))
        let error = expect(.alreadyExists) { try store.keys.add(last, label: "") }
        #expect(error?.slotID == 15)
        try store.keys.remove(7)
        #expect(try store.keys.add(.keyFile(Self.other), label: "").id == 16)
        // The new slot has the place of the removed one, and is the last by its number.
        #expect(try store.keys.slots.map(\.id) == [1, 2, 3, 4, 5, 6] + Array(8...16))
        try store.close()
        #expect(refusal(.keyFile(Self.other)) == nil)
    }

    @Test func `what cannot be a credential or a label is refused, and nothing is written`() throws
    {
        let store = try open()
        let before = try bytes
        expect(.misuse) { try store.keys.add(.passphrase(""), label: "") }
        expect(.misuse) { try store.keys.add(.keyFile([1, 2]), label: "") }
        expect(.misuse) { try store.keys.add(.recipient([1, 2]), label: "") }
        // No secret is shared with a point of low order.
        let low = [UInt8](repeating: 0, count: 32)
        expect(.misuse) { try store.keys.add(.recipient(low), label: "") }
        expect(.misuse) { try store.keys.add(.keyFile(Self.other), label: "a\nb") }
        let long = [UInt8](repeating: 1, count: 703)
        expect(.misuse) { try store.keys.add(.external { _ in long }, label: "") }
        let failing = NewSlot.external { _ in throw CocoaError(.fileNoSuchFile) }
        let error = #expect(throws: StoreError.self) {
            try store.keys.add(failing, label: "")
        }
        #expect(error?.code == .io && error?.cause is CocoaError)
        let costly = KeyCost(log2N: 18, parallelism: 1)
        expect(.tooCostly) { try store.keys.add(.passphrase("x"), label: "", cost: costly) }
        #expect(try bytes == before)
        try store.close()
    }

    @Test func `a recovery key that is not typed back is not added`() throws {
        let store = try open()
        let before = try bytes
        expect(.misuse) { try store.keys.addRecoveryKey(label: "") { _ in [] } }
        let other = KeyLetters.recoveryKey.withText(of: KeyVectors.secret(Self.other)) { Array($0) }
        expect(.misuse) { try store.keys.addRecoveryKey(label: "") { _ in other } }
        #expect(throws: CancellationError.self) {
            try store.keys.addRecoveryKey(label: "") { _ in throw CancellationError() }
        }
        #expect(try bytes == before)
        try store.close()
    }

    // MARK: Changing and removing

    @Test func `a changed slot keeps its number and opens for the new credential alone`() throws {
        let now = Shared(Date(timeIntervalSince1970: 1_800_000_000))
        let store = try open { $0.currentDate = { now.value } }
        let slot = try store.keys.add(.passphrase("old"), label: "me", cost: Self.cheap)
        now.value += 60
        let changed = try store.keys.change(slot.id, to: .passphrase("new"), cost: Self.cheap)
        #expect(changed.id == slot.id && changed.label == "me" && changed.made == slot.made)
        #expect(changed.changed == now.value)
        expect(.notFound) { try store.keys.change(9, to: .passphrase("new")) }
        let renamed = try store.keys.change(slot.id, to: .keyFile(Self.other), label: "them")
        #expect(renamed.kind == .keyFile && renamed.label == "them")
        try store.keys.change(slot.id, to: .passphrase("newer"), cost: Self.cheap)
        try store.close()
        #expect(refusal(.passphrase("old")) == .wrongKey)
        #expect(refusal(.keyFile(Self.other)) == .wrongKey)
        #expect(refusal(.passphrase("newer")) == nil)
    }

    @Test func `a changed passphrase gets a fresh salt, unless another slot shares it`() throws {
        func salts() throws -> [[UInt8]] {
            let areas = try #require(try KeyringFile(of: FileLocation(path)).areas())
            return areas.current[0].content.slots.filter { $0.kind == .passphrase }
                .map(\.derivationSalt)
        }
        let store = try open()
        try store.keys.add(.passphrase("a"), label: "", cost: Self.cheap)
        let first = try salts()
        try store.keys.change(2, to: .passphrase("b"), cost: Self.cheap)
        let second = try salts()
        #expect(first != second)
        try store.keys.add(.passphrase("c"), label: "", cost: Self.cheap)
        try store.keys.change(2, to: .passphrase("d"), cost: Self.cheap)
        #expect(try salts() == [second[0], second[0]])
        try store.close()
    }

    @Test func `a removed slot opens no more, its number is not reused, the last one stays`() throws
    {
        let store = try open()
        try store.keys.add(.keyFile(Self.other), label: "")
        try store.keys.remove(2)
        expect(.notFound) { try store.keys.remove(2) }
        expect(.lastSlot) { try store.keys.remove(1) }
        #expect(try store.keys.add(.passphrase("x"), label: "", cost: Self.cheap).id == 3)
        try store.close()
        #expect(refusal(.keyFile(Self.other)) == .wrongKey)
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a change makes two writes and two syncs, and touches no page of the file`() throws {
        let steps = Shared([KeyringFile.Step]())
        let store = try open {
            $0.keyringWillStep = { step, _ throws(StoreError) in steps.value.append(step) }
        }
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.keys.add(.passphrase("x"), label: "", cost: Self.cheap)
        // Reading an open file would release the locks of this process on it.
        func files() throws -> [[String]] {
            try ["", "-wal"].map { suffix in
                let found = try FileManager.default.attributesOfItem(atPath: path + suffix)
                return ["\(found[.size] ?? "")", "\(found[.modificationDate] ?? "")"]
            }
        }
        let before = try files()
        steps.value = []
        try store.keys.change(2, to: .passphrase("y"), cost: Self.cheap)
        #expect(
            steps.value == [.lock, .write(area: 0), .sync, .write(area: 1), .sync]
                || steps.value == [.lock, .write(area: 1), .sync, .write(area: 0), .sync])
        #expect(try files() == before)
        try store.close()
    }

    @Test func `a store adds to what another process has written meanwhile`() throws {
        let store = try open()
        let file = KeyringFile(of: try FileLocation(path))
        for number in 0..<6 as Range<UInt8> {
            let bytes = [UInt8](repeating: number, count: 32)
            if number.isMultiple(of: 2) {
                try store.keys.add(.keyFile(bytes), label: "\(number)")
                continue
            }
            let areas = try #require(try file.areas())
            let root = try areas.unlocked(
                by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax
            ).root.copy()
            let prepared = try PreparedSlot(
                .keyFile(bytes), label: SlotLabel("\(number)"), cost: .standard,
                memoryMax: KeyringFixture.memoryMax, for: areas.current[0].content)
            try KeyringLock(file, timeout: .zero).change(under: root) {
                (content) throws(StoreError) in
                _ = try content.add(prepared, under: root, now: 0)
            }
        }
        #expect(try store.keys.slots.map(\.id) == Array(1...7))
        #expect(try store.keys.slots.map(\.label) == ["first", "0", "1", "2", "3", "4", "5"])
        try store.close()
    }

    @Test func `a third cost of passphrases is refused: it would be a third derivation`() throws {
        let store = try open()
        try store.keys.add(.passphrase("a"), label: "", cost: Self.cheap)
        try store.keys.add(
            .passphrase("b"), label: "", cost: KeyCost(log2N: 14, parallelism: 2))
        let third = KeyCost(log2N: 14, parallelism: 3)
        let before = try bytes
        expect(.misuse) { try store.keys.add(.passphrase("c"), label: "", cost: third) }
        expect(.misuse) { try store.keys.change(1, to: .passphrase("c"), cost: third) }
        #expect(try bytes == before)
        try store.keys.change(2, to: .passphrase("c"), cost: third)
        try store.close()
        #expect(refusal(.passphrase("b")) == nil)
    }

    // MARK: The root

    @Test func `a passphrase is compared with slots of another cost, also those added meanwhile`()
        throws
    {
        let store = try open()
        let other = KeyCost(log2N: 14, parallelism: 2)
        try store.keys.add(.passphrase("open sesame"), label: "", cost: other)
        expect(.alreadyExists) {
            _ = try store.keys.add(.passphrase("open sesame"), label: "", cost: Self.cheap)
        }
        try store.keys.add(.passphrase("another"), label: "", cost: Self.cheap)
        expect(.alreadyExists) {
            _ = try store.keys.change(2, to: .passphrase("another"), cost: other)
        }
        try store.keys.change(2, to: .passphrase("open sesame"), cost: Self.cheap)

        // One process derives while another one adds the same passphrase.
        let keyring = try store.keys.open()
        let before = try keyring.current().content
        let prepared = try PreparedSlot(
            .passphrase("third"), label: SlotLabel("late"), cost: other,
            memoryMax: keyring.memoryMax, for: before)
        try store.keys.add(.passphrase("third"), label: "", cost: other)
        let root = try keyring.root()
        var content = try keyring.current().content
        let slots = content.slots
        let error = #expect(throws: StoreError.self) {
            _ = try content.add(prepared, under: root.key, now: 1)
        }
        #expect(error?.code == .busy && content.slots == slots)

        // One process derives while another one takes the slot from its passphrase.
        let late = try PreparedSlot(
            .passphrase("open sesame"), label: SlotLabel("late"), cost: other,
            memoryMax: keyring.memoryMax, for: keyring.current().content, replacing: 2)
        try store.keys.change(2, to: .passphrase("fourth"), cost: Self.cheap)
        content = try keyring.current().content
        let refusal = #expect(throws: StoreError.self) {
            _ = try content.replace(2, by: late, under: root.key, now: 1)
        }
        #expect(refusal?.code == .busy)
        try store.close()
    }

    @Test func `a slot gets another label in one change, and its credential stays`() async throws {
        let store = try open()
        #expect(try await store.keys.rename(1, to: "laptop").label == "laptop")
        try await store.keys.rename(1, to: "")
        #expect(try store.keys.slots.map(\.label) == [""])
        expect(.notFound) { _ = try store.keys.rename(2, to: "x") }
        expect(.misuse) { _ = try store.keys.rename(1, to: "a\u{202e}b") }
        try await store.close()
        #expect(refusal(.keyFile(Self.file)) == nil)
    }

    @Test func `a root backup is counted before it is shown, and makes the root`() throws {
        let store = try open()
        try store.keys.withRootBackup { letters in
            #expect(String(decoding: letters, as: UTF8.self).hasPrefix("ROOT-"))
            let areas = try #require(try KeyringFile(of: FileLocation(path)).areas())
            #expect(areas.current[0].content.rootBackupCount == 1)
            let root = RootKey(bytes: try KeyLetters.rootBackup.secret(letters))
            #expect(areas.authentic(under: root) != nil)
        }
        #expect(throws: CancellationError.self) {
            try store.keys.withRootBackup { _ in throw CancellationError() }
        }
        let areas = try #require(try KeyringFile(of: FileLocation(path)).areas())
        #expect(areas.current[0].content.rootBackupCount == 2)
        #expect(areas.current[0].content.lastRootBackup > 0)
        try store.close()
    }

    @Test func `a lost keyring is written again from memory, never over a file`() throws {
        let store = try open()
        try store.keys.add(.keyFile(Self.other), label: "")
        try FileManager.default.removeItem(atPath: path + ".keyring")
        expect(.keyringMissing) { try store.keys.add(.passphrase("x"), label: "") }
        try store.keys.backUp(to: path + ".keyring")
        expect(.alreadyExists) { try store.keys.backUp(to: path + ".keyring") }
        expect(.alreadyExists) { try store.keys.backUp(to: path) }
        try store.close()
        #expect(refusal(.keyFile(Self.other)) == nil)
    }

    @Test func `without its root a store works, and changes no slot until it is unlocked`() throws {
        let store = try open(keepsRoot: false)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        expect(.misuse) { try store.keys.add(.keyFile(Self.other), label: "") }
        expect(.misuse) { _ = try store.keys.slots }
        expect(.wrongKey) { try store.keys.unlock(.keyFile(Self.other)) }
        try store.keys.unlock(.keyFile(Self.file))
        try store.keys.add(.keyFile(Self.other), label: "")
        try store.keys.lock()
        expect(.misuse) { try store.keys.remove(2) }
        try store.close()
        #expect(refusal(.keyFile(Self.other)) == nil)
    }

    @Test func `a store without a keyring, or for reading only, changes no slots`() throws {
        let plain = try Store(path: path, key: .numbered(1))
        expect(.misuse) { _ = try plain.keys.slots }
        expect(.misuse) { try plain.keys.remove(1) }
        try plain.close()
        removeStore(path)
        try open().close()
        let store = try open(mode: .readOnly)
        #expect(try store.keys.slots.map(\.id) == [1])
        expect(.readOnly) { try store.keys.remove(1) }
        try store.close()
    }

    // MARK: Asynchronous forms

    @Test func `each asynchronous form does what the synchronous one does`() async throws {
        let store = try open()
        let ops = try await store.keys.add(.passphrase("a"), label: "ops", cost: Self.cheap)
        try await store.keys.change(ops.id, to: .keyFile(Self.other))
        try await store.keys.addRecoveryKey(label: "safe") { letters in
            let typed = Array(letters)
            await Task.yield()
            return typed
        }
        await #expect(throws: StoreError.self) {
            try await store.keys.addRecoveryKey(label: "none") { letters in
                let typed = letters.reversed() as [UInt8]
                await Task.yield()
                return typed
            }
        }
        let letters = try await store.keys.withRootBackup { letters in
            let copied = Array(letters)
            await Task.yield()
            return copied
        }
        #expect(try store.keys.slots.map(\.label) == ["first", "ops", "safe"])
        #expect(try store.keys.keyring.rootBackups.count == 1)
        try store.keys.lock()
        try await store.keys.unlock(.keyFile(Self.other))
        try await store.keys.remove(1)
        let copy = folder.path("copy")
        try await store.keys.backUp(to: copy)
        try await store.close()
        #expect(refusal(.keyFile(Self.file)) == .wrongKey)
        #expect(refusal(.keyFile(Self.other)) == nil)

        let rebuilt = try await Keyring.rebuild(
            for: path, rootBackup: letters, as: .keyFile(Self.file), label: "new")
        #expect(rebuilt == path + ".keyring.old-1")
        #expect(refusal(.keyFile(Self.file)) == nil)
        let restored = try await Keyring.restore(
            from: copy, for: path, by: .keyFile(Self.other))
        #expect(restored == path + ".keyring.old-2")
        #expect(refusal(.keyFile(Self.other)) == nil)
    }

    // MARK: Letters of a recipient

    @Test func `the letters of a recipient add a slot, and those of the identity open it`() throws {
        let identity = KeyCredential.newIdentity()
        let publicLetters = try identity.recipientText()
        let letters = identity.withIdentityLetters { Array($0) }
        let store = try open()
        try store.keys.add(.recipient(letters: publicLetters.lowercased().utf8), label: "")
        let before = try bytes
        expect(.misuse) { try store.keys.add(.recipient(letters: letters), label: "") }
        expect(.misuse) { _ = try KeyCredential.identity(letters: publicLetters.utf8) }
        #expect(try bytes == before)
        try store.close()
        #expect(refusal(try .identity(letters: letters + Array("\r\n".utf8))) == nil)
    }

    // MARK: The file

    @Test func `a keyring that somebody replaces under an open store is not changed`() throws {
        let store = try open()
        let otherPath = folder.path("other.db")
        try Store(path: otherPath, key: .keyring(.keyFile(Self.file))).close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try FileManager.default.moveItem(
            atPath: otherPath + ".keyring", toPath: path + ".keyring")
        let before = try bytes
        expect(.keyringMismatch) { try store.keys.add(.keyFile(Self.other), label: "") }
        expect(.keyringMismatch) { _ = try store.keys.slots }
        #expect(try bytes == before)
        try store.close()
    }
}
