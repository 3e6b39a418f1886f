import Foundation
import Testing

@testable import Coffer

/// Opening stores with a credential of their keyring.
@Suite(.againstHanging, .onOwnThreads) struct KeyringStoreTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(
        _ credential: borrowing KeyCredential = .keyFile(file), mode: OpenMode = .createIfMissing,
        journalMode: Configuration.JournalMode = .wal, acceptsOlderFile: Bool = false,
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws -> Store {
        var configuration = Configuration.testing(journalMode)
        configuration.keyCost = KeyCost(log2N: 14, parallelism: 1)
        change(&configuration)
        return try Store(
            path: path, key: .keyring(credential, acceptsOlderFile: acceptsOlderFile), mode: mode,
            configuration: configuration)
    }

    private var keyring: KeyringFile {
        get throws { KeyringFile(of: try FileLocation(path)) }
    }

    /// The content of the keyring, and its root.
    private func unlocked() throws -> UnlockedKeyring {
        try #require(try keyring.areas()).unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
    }

    // MARK: Making

    @Test(arguments: journalModes)
    func `a first opening makes both files, and the credential opens them again`(
        journalMode: Configuration.JournalMode
    ) throws {
        for credential in 0..<4 {
            let path = folder.path("\(credential).db")
            func key() throws -> KeyCredential {
                switch credential {
                case 0: return .passphrase("open sesame")
                case 1: return .keyFile(Self.file)
                case 2:
                    return KeyCredential(
                        kind: .recoveryKey, secret: KeyVectors.secret(Self.file))
                default: return .identity(Self.file)
                }
            }
            var configuration = Configuration.testing(journalMode)
            configuration.keyCost = KeyCost(log2N: 14, parallelism: 1)
            let made = try Store(
                path: path, key: .keyring(key()), configuration: configuration)
            try made.write { tx in
                try tx.execute("CREATE TABLE t(v)")
                try tx.execute("INSERT INTO t VALUES (7)")
            }
            try made.close()
            let again = try Store(
                path: path, key: .keyring(key()), mode: .mustExist, configuration: configuration)
            #expect(try again.read { tx in try tx.rows("SELECT v FROM t").count } == 1)
            #expect(try again.keys.slots.map(\.id) == [1])
            #expect(try again.keys.ownSlotID == 1)
            try again.close()
            let content = try #require(
                try KeyringFile(of: FileLocation(path)).areas()?.current.first?.content)
            #expect(content.state == .isInUse && content.generation == 2)
        }
    }

    @Test func `a keyring store is an ordinary file under the data key`() throws {
        try open().close()
        let unlocked = try unlocked()
        let content = unlocked.area.content
        let key = unlocked.root.dataKey(epoch: content.epoch, id: content.id)
        let store = try Store(path: path, key: key.storeKey(), mode: .mustExist)
        #expect(try store.keyID().bytes == content.keyID)
        #expect(store.profile == content.profile)
        try store.close()
    }

    @Test func `an interrupted creation is finished by the next opening`() throws {
        for step in 0..<8 {
            let path = folder.path("\(step).db")
            let stopped = Shared(step)
            var configuration = Configuration.testing()
            configuration.keyringWillStep = { _, _ throws(StoreError) in
                stopped.value -= 1
                guard stopped.value >= 0 else { throw StoreError(.io, "stopped") }
            }
            _ = try? Store(
                path: path, key: .keyring(.keyFile(Self.file)), configuration: configuration)
            let store = try Store(path: path, key: .keyring(.keyFile(Self.file)))
            try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
            try store.close()
            let content = try #require(
                try KeyringFile(of: FileLocation(path)).areas()?.current.first?.content)
            #expect(content.state == .isInUse, "stopped at step \(step)")
        }
    }

    @Test func `a keyring that somebody has made for a public key makes no store`() throws {
        let planted = folder.path("planted.db")
        try Store(path: planted, key: .keyring(.identity(Self.file))).close()
        // As after a creation that ended before the database was made.
        try FileManager.default.removeItem(atPath: planted)
        let file = KeyringFile(of: try FileLocation(planted))
        let opened = try #require(
            try file.areas()
        ).unlocked(
            by: .identity(Self.file), memoryMax: KeyringFixture.memoryMax)
        var content = opened.area.content
        content.state = .isBeingCreated
        try FileManager.default.removeItem(atPath: file.location.path)
        #expect(try file.make(KeyringArea(content, under: opened.root)))
        expect(.alreadyExists) {
            try Store(path: planted, key: .keyring(.identity(Self.file)))
        }
        #expect(!FileManager.default.fileExists(atPath: planted))
    }

    @Test func `of creators at once one makes the store, and all open it`() async throws {
        let path = path
        try await withThrowingTaskGroup(of: StoreError.Code?.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    do {
                        let connection = try Connection(
                            path: path, key: .keyring(.keyFile(Self.file)))
                        connection.close()
                        return nil
                    } catch let error as StoreError {
                        return error.code
                    }
                }
            }
            for try await code in group { #expect(code == nil) }
        }
        try await open(mode: .mustExist).close()
    }

    // MARK: Refusals

    @Test func `each missing or wrong piece has its own error, and nothing is made`() throws {
        expect(.notFound) { _ = try open(mode: .mustExist) }
        #expect(try folder.names() == [])
        try open().close()
        expect(.wrongKey) { _ = try open(.passphrase("x")) }
        expect(.misuse) { _ = try open(.keyFile(Self.file.reversed() + [1])) }
        let plain = #expect(throws: StoreError.self) {
            _ = try Store(path: path, key: .passphrase("x"))
        }
        #expect(plain?.code == .wrongKey && plain?.hint?.contains("keyring") == true)
        try FileManager.default.moveItem(atPath: path, toPath: folder.path("away"))
        expect(.notFound) { _ = try open() }
        expect(.notFound) { _ = try Store(path: path, key: .passphrase("x")) }
        try FileManager.default.moveItem(atPath: folder.path("away"), toPath: path)
        try FileManager.default.removeItem(atPath: path + ".keyring")
        expect(.keyringMissing) { _ = try open() }
        #expect(try folder.names() == ["store.db"])
    }

    @Test func `a file with a keyring is not rekeyed, with a credential or with its data key`()
        throws
    {
        let store = try open()
        expect(.misuse) { _ = try store.rekey(to: .passphrase("own")) }
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let unlocked = try unlocked()
        let content = unlocked.area.content
        let key = unlocked.root.dataKey(epoch: content.epoch, id: content.id)
        let connection = try Connection(path: path, key: key.storeKey())
        expect(.misuse) { _ = try connection.rekey(to: .passphrase("own")) }
        connection.close()
        expect(.misuse) {
            _ = try RekeyRehearsal(path: path, key: key.storeKey(), newKey: .passphrase("own"))
        }
        try open(mode: .mustExist).close()
    }

    @Test func `an abandoned keyring opens earlier copies, and the store has a key of its own`()
        throws
    {
        let store = try open()
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        let copy = folder.path("copy.db")
        try store.backup(to: copy)
        let report = try store.rekey(to: .passphrase("own"), abandonsKeyring: true)
        #expect(report.abandonedKeyring == path + ".keyring.old-1")
        #expect(report.keyringFailure == nil)
        #expect(throws: StoreError.self) { try store.keys.slots }
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        try store.close()
        try Store(path: path, key: .passphrase("own")).close()
        expect(.keyringMissing) { _ = try open(mode: .mustExist) }
        try Store(path: copy, key: .keyring(.keyFile(Self.file)), mode: .mustExist).close()
    }

    @Test func `the keyring of another file is a mismatch, and says so`() throws {
        try open().close()
        let other = folder.path("other.db")
        try Store(path: other, key: .keyring(.keyFile(Self.file))).close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try FileManager.default.copyItem(atPath: other + ".keyring", toPath: path + ".keyring")
        let error = #expect(throws: StoreError.self) { _ = try open() }
        #expect(error?.code == .keyringMismatch)
        #expect(error?.message.contains("another file") == true)
        let stranger = #expect(throws: StoreError.self) { _ = try open(.passphrase("x")) }
        #expect(stranger?.code == .keyringMismatch)
        #expect(stranger?.message.contains("no slot") == true)
        // Only a first page that is final tells.
        try Data([1]).write(to: URL(filePath: path + "-wal"))
        expect(.wrongKey) { _ = try open(.passphrase("x")) }
    }

    @Test func `a passphrase that costs too much is refused before it is derived`() throws {
        try open(.passphrase("x")).close()
        expect(.tooCostly) {
            _ = try open(.passphrase("x")) { $0.maximumKeyMemoryByteCount = 8 << 20 }
        }
    }

    @Test func `a damaged first page is damage, not a wrong key`() throws {
        let store = try open(journalMode: .delete)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let handle = try FileHandle(forUpdating: URL(filePath: path))
        try handle.seek(toOffset: 300)
        try handle.write(contentsOf: [1, 2, 3])
        try handle.close()
        expect(.damaged) { _ = try open() }
    }

    // MARK: Older files

    @Test func `an older store of the same epoch opens without a sign`() throws {
        let store = try open(journalMode: .delete)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        let saved = try Data(contentsOf: URL(filePath: path))
        try store.write { tx in try tx.execute("DROP TABLE t") }
        try store.close()
        try saved.write(to: URL(filePath: path))
        let older = try open(mode: .mustExist, journalMode: .delete)
        #expect(try older.read { tx in try tx.rows("SELECT v FROM t").count } == 0)
        try older.close()
    }

    @Test func `an older keyring brings a removed slot back`() throws {
        let store = try open()
        try store.keys.add(.keyFile([UInt8](repeating: 43, count: 32)), label: "leaver")
        let saved = try Data(contentsOf: URL(filePath: path + ".keyring"))
        try store.keys.remove(2)
        try store.close()
        expect(.wrongKey) { _ = try open(.keyFile([UInt8](repeating: 43, count: 32))) }
        try saved.write(to: URL(filePath: path + ".keyring"))
        try open(.keyFile([UInt8](repeating: 43, count: 32))).close()
    }

    // MARK: Another epoch than the keyring says

    /// Puts the file under the key of another epoch, as a rotation does, and leaves the keyring.
    private func rotate(to epoch: UInt32) throws {
        let unlocked = try unlocked()
        let content = unlocked.area.content
        let old = unlocked.root.dataKey(epoch: content.epoch, id: content.id)
        let store = try Store(path: path, key: old.storeKey(), mode: .mustExist)
        let new = unlocked.root.dataKey(epoch: epoch, id: content.id)
        try withoutKeyring { _ = try store.rekey(to: new.storeKey()) }
        try store.close()
    }

    /// Runs work while the keyring has another name.
    private func withoutKeyring(_ work: () throws -> Void) throws {
        let (name, other) = (path + ".keyring", folder.path("away.keyring"))
        try FileManager.default.moveItem(atPath: name, toPath: other)
        try work()
        try FileManager.default.moveItem(atPath: other, toPath: name)
    }

    @Test(arguments: journalModes)
    func `an old keyring opens a newer file, and learns its epoch`(
        journalMode: Configuration.JournalMode
    ) throws {
        let store = try open(journalMode: journalMode)
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let saved = try Data(contentsOf: URL(filePath: path + ".keyring"))
        for epoch: UInt32 in [2, 40, 5_123] {
            try rotate(to: epoch)
            try saved.write(to: URL(filePath: path + ".keyring"))
            let readOnly = try open(mode: .readOnly, journalMode: journalMode)
            try readOnly.close()
            #expect(try Data(contentsOf: URL(filePath: path + ".keyring")) == saved)
            let log = LogRecorder()
            for _ in 0..<2 {
                try open(journalMode: journalMode) { $0.logger = log.logger }.close()
            }
            // Once, with what it recorded.
            let notices = log.events.filter { $0.message.contains("the epoch of the file") }
            #expect(notices.map { $0.metadata["epoch"] } == ["\(epoch)"])
            let content = try unlocked().area.content
            #expect(content.epoch == epoch && content.highestEpoch == epoch)
            let before = try KeyringAreas(stored: [UInt8](saved)).current[0].content
            #expect(content.keyID != before.keyID)
        }
    }

    @Test func `a file older than the keyring opens only on purpose`() throws {
        let store = try open()
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let saved = try Data(contentsOf: URL(filePath: path))
        try rotate(to: 9)
        try open().close()
        try saved.write(to: URL(filePath: path))
        expect(.olderFile) { _ = try open() }
        try open(acceptsOlderFile: true).close()
        let content = try unlocked().area.content
        #expect(content.epoch == 1 && content.highestEpoch == 9)
        try open().close()
    }

    @Test func `a log of a later epoch than its file decides`() throws {
        let store = try open()
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.close()
        let keyring = try Data(contentsOf: URL(filePath: path + ".keyring"))
        try rotate(to: 8)
        let old = try Data(contentsOf: URL(filePath: path))
        try open().close()
        // A reader keeps the log of the next change from being moved.
        let unlocked = try unlocked()
        let key = unlocked.root.dataKey(epoch: 8, id: unlocked.area.content.id)
        let reader = try Connection(path: path, key: key.storeKey(), mode: .mustExist)
        try reader.transaction(.deferred) {
            _ = try reader.rows("SELECT * FROM t")
            let writer = try Store(path: path, key: key.storeKey())
            let next = unlocked.root.dataKey(epoch: 9, id: unlocked.area.content.id)
            try withoutKeyring { _ = try writer.rekey(to: next.storeKey()) }
            let copy = folder.path("copy.db")
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            try FileManager.default.copyItem(atPath: path + "-wal", toPath: copy + "-wal")
            try keyring.write(to: URL(filePath: copy + ".keyring"))
            #expect(try Data(contentsOf: URL(filePath: copy)) == old)
            for mode in [OpenMode.readOnly, .mustExist] {
                let store = try Store(
                    path: copy, key: .keyring(.keyFile(Self.file)), mode: mode)
                #expect(try store.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
                try store.close()
            }
            let found = try KeyringFile(of: FileLocation(copy)).areas()?.current.first?.content
            #expect(found?.epoch == 9)
            try? writer.close()
        }
        reader.close()
    }

    @Test(.onSmallDisk)
    func `slots change on a full disk, and what needs room is refused and leaves nothing`() throws {
        let folder = try TemporaryFolder()
        let lines = try SmallDisk.run(folder, byteCount: 1 << 20) {
            ["keyring-full", "\($0)/store.db"]
        }
        #expect(
            lines == [
                "add done", "change done", "back up full", "copy full", "restore full",
                "make full", "files before store.db store.db.keyring", "opens 1 3 4",
            ])
    }
}
