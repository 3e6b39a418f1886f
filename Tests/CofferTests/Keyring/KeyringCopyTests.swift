import Crypto
import Foundation
import Testing

@testable import Coffer

/// Copies of keyring stores, and copies that get a keyring.
@Suite(.againstHanging, .onOwnThreads) struct KeyringCopyTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)
    private static let other = [UInt8](repeating: 43, count: 32)
    private static let third = [UInt8](repeating: 44, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(
        _ path: String, _ bytes: [UInt8] = file, mode: OpenMode = .mustExist
    ) throws -> Store {
        try Store(path: path, key: .keyring(.keyFile(bytes)), mode: mode)
    }

    /// A store with two slots and this many rows.
    private func make(_ path: String, rowCount: Int, _ bytes: [UInt8] = file) throws -> Store {
        let store = try open(path, bytes, mode: .createIfMissing)
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            for _ in 0..<rowCount { try tx.execute("INSERT INTO t VALUES (zeroblob(2000))") }
        }
        try store.keys.add(.keyFile(Self.other), label: "other")
        return store
    }

    private func rowCount(_ path: String, _ key: borrowing StoreKey) throws -> Int {
        let store = try Store(path: path, key: key, mode: .mustExist)
        defer { try? store.close() }
        return try store.read { tx in try tx.rows("SELECT v FROM t").count }
    }

    private func rowCount(_ path: String, _ bytes: [UInt8] = file) throws -> Int {
        try rowCount(path, .keyring(.keyFile(bytes)))
    }

    private func content(_ path: String) throws -> KeyringContent {
        let areas = try KeyringFile(of: FileLocation(path)).areas()
        return try #require(areas?.current.first).content
    }

    // MARK: Backup

    @Test func `a backup has a keyring of its own, with every slot`() throws {
        let store = try make(path, rowCount: 3)
        let copy = folder.path("copy.db")
        try store.backup(to: copy)
        try store.keys.remove(2)
        try store.close()
        #expect(try rowCount(copy) == 3)
        #expect(try rowCount(copy, Self.other) == 3)
        expect(.wrongKey) { _ = try rowCount(path, Self.other) }
        #expect(try content(copy).rootID == content(path).rootID)
        #expect(
            try folder.names().filter { $0.hasPrefix("copy") } == ["copy.db", "copy.db.keyring"])
    }

    @Test func `a backup for another credential has another root`() throws {
        let store = try make(path, rowCount: 3)
        let copy = folder.path("copy.db")
        try store.backup(to: copy, key: .keyring(.passphrase("for the safe")))
        try store.close()
        #expect(try rowCount(copy, .keyring(.passphrase("for the safe"))) == 3)
        expect(.wrongKey) { _ = try rowCount(copy) }
        #expect(try content(copy).rootID != content(path).rootID)
        #expect(try content(copy).id != content(path).id)
        #expect(try content(copy).slots.count == 1)
    }

    @Test func `a backup with a key of its own has no keyring`() throws {
        let store = try make(path, rowCount: 3)
        let copy = folder.path("copy.db")
        try store.backup(to: copy, key: .numbered(1))
        try store.close()
        #expect(try rowCount(copy, .numbered(1)) == 3)
        #expect(try !folder.names().contains("copy.db.keyring"))
    }

    @Test func `a backup gets the permissions of the store, and so does its keyring`() throws {
        let store = try make(path, rowCount: 1)
        try FileLocation(path).setPermissions(0o640)
        let copy = folder.path("copy.db")
        try store.backup(to: copy)
        try store.close()
        #expect(try FileLocation(copy).permissions() & 0o777 == 0o640)
        #expect(try FileLocation(copy + ".keyring").permissions() & 0o777 == 0o640)
    }

    @Test func `no copy is made next to an existing keyring`() throws {
        let store = try make(path, rowCount: 1)
        let copy = folder.path("copy.db")
        try Data("x".utf8).write(to: URL(filePath: copy + ".keyring"))
        expect(.alreadyExists) { _ = try store.backup(to: copy) }
        expect(.alreadyExists) { _ = try store.backup(to: copy, key: .numbered(1)) }
        try store.close()
        #expect(try Data(contentsOf: URL(filePath: copy + ".keyring")) == Data("x".utf8))
        #expect(try !folder.names().contains("copy.db"))
    }

    @Test func `a store that keeps no root is backed up with the slots that it knows`() throws {
        try make(path, rowCount: 3).close()
        let store = try Store(
            path: path, key: .keyring(.keyFile(Self.file), keepsRoot: false), mode: .mustExist)
        let copy = folder.path("copy.db")
        try store.backup(to: copy)
        try store.close()
        #expect(try rowCount(copy, Self.other) == 3)
    }

    // MARK: Other copies

    @Test func `a plaintext database, another store and rows of a damaged one get a keyring`()
        throws
    {
        let plain = folder.path("plain.db")
        let made = try make(path, rowCount: 3)
        _ = try made.decrypt(to: plain)
        try made.close()
        let credential = KeyBox(StoreKey.keyring(.keyFile(Self.third)))
        try Store.encrypt(
            plaintextAt: plain, to: folder.path("encrypted.db"), key: credential.key)
        #expect(try rowCount(folder.path("encrypted.db"), Self.third) == 3)
        try Store.upgrade(
            from: path, key: .keyring(.keyFile(Self.other)), to: folder.path("upgraded.db"),
            newKey: credential.key.copy())
        #expect(try rowCount(folder.path("upgraded.db"), Self.third) == 3)
        let connection = try Connection(path: path, key: .keyring(.keyFile(Self.file)))
        try connection.save(to: folder.path("saved.db"), key: credential.key)
        connection.close()
        #expect(try rowCount(folder.path("saved.db"), Self.third) == 3)
        let report = try Store.salvage(
            damagedAt: path, key: .keyring(.keyFile(Self.file)), to: folder.path("salvaged.db"),
            newKey: credential.key.copy())
        #expect(report.isComplete)
        #expect(try rowCount(folder.path("salvaged.db"), Self.third) == 3)
        expect(.misuse) {
            try Store.encrypt(
                plaintextAt: plain, to: folder.path("x.db"),
                key: .keyring(.external(Self.file, slot: 1)))
        }
        #expect(try folder.names().filter { $0.hasPrefix("x.") } == [])
    }

    @Test(arguments: [0, 4 * 4096 + 100])
    func `a damaged store is salvaged by a credential of its keyring`(offset: Int) throws {
        let store = try make(path, rowCount: 30)
        try store.checkpoint(.truncate)
        try store.close()
        let handle = try FileHandle(forUpdating: URL(filePath: path))
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(repeating: 0xff, count: 600))
        try handle.close()
        let report = try Store.salvage(
            damagedAt: path, key: .keyring(.keyFile(Self.other)), to: folder.path("new.db"),
            newKey: .numbered(1))
        #expect(!report.isComplete)
        // Without its first page a store has lost the names of its tables.
        if offset > 0 { #expect(try rowCount(folder.path("new.db"), .numbered(1)) > 0) }
        expect(.wrongKey) {
            _ = try Store.salvage(
                damagedAt: path, key: .keyring(.keyFile(Self.third)),
                to: folder.path("newer.db"), newKey: .numbered(1))
        }
    }

    // MARK: Restore

    private func backUp(_ store: Store) throws -> String {
        let backup = folder.path("backup.db")
        try store.backup(to: backup)
        return backup
    }

    private func restore(
        _ backup: String, failingAt step: Int? = nil, key: borrowing StoreKey? = nil
    ) throws -> RestoreReport {
        var restoration = Restoration(
            configuration: .testing(.existing), monitor: CopyMonitor(progress: nil))
        let steps = Shared(0)
        restoration.willRename = { () throws(StoreError) in
            defer { steps.value += 1 }
            guard steps.value != step else { throw StoreError(.io, "stopped") }
        }
        let key = key.copy() ?? .keyring(.keyFile(Self.file))
        return try restoration.run(from: backup, key: key, to: path)
    }

    @Test func `a lost store comes back with its keyring`() throws {
        let store = try make(path, rowCount: 3)
        let backup = try backUp(store)
        try store.close()
        removeStore(path)
        try FileManager.default.removeItem(atPath: path + ".keyring")
        #expect(try restore(backup).oldPath == nil)
        #expect(try rowCount(path) == 3)
        #expect(try rowCount(path, Self.other) == 3)
    }

    @Test func `a restored store keeps the slots that it has now`() throws {
        let store = try make(path, rowCount: 3)
        let backup = try backUp(store)
        try store.keys.remove(2)
        try store.keys.add(.keyFile(Self.third), label: "third")
        try store.write { tx in try tx.execute("DELETE FROM t") }
        try store.close()
        let old = try #require(try restore(backup).oldPath)
        #expect(try rowCount(path) == 3)
        #expect(try rowCount(path, Self.third) == 3)
        expect(.wrongKey) { _ = try rowCount(path, Self.other) }
        #expect(try rowCount(old, Self.third) == 0)
    }

    @Test func `a keyring of another root goes with the store that is replaced`() throws {
        let backed = try make(folder.path("first.db"), rowCount: 3)
        let backup = try backUp(backed)
        try backed.close()
        try make(path, rowCount: 5, Self.third).close()
        let old = try #require(try restore(backup).oldPath)
        #expect(try rowCount(path) == 3)
        expect(.wrongKey) { _ = try rowCount(path, Self.third) }
        #expect(try rowCount(old, Self.third) == 5)
    }

    @Test func `a store with a key of its own takes the place of a keyring store`() throws {
        let plain = try Store(path: folder.path("plain.db"), key: .numbered(1))
        try plain.write { tx in try tx.execute("CREATE TABLE t(v)") }
        let backup = try backUp(plain)
        try plain.close()
        try make(path, rowCount: 5).close()
        let old = try #require(try restore(backup, key: .numbered(1)).oldPath)
        #expect(try rowCount(path, .numbered(1)) == 0)
        #expect(try !folder.names().contains("store.db.keyring"))
        #expect(try rowCount(old) == 5)
    }

    @Test func `a keyring of a later version stays, and nothing is restored`() throws {
        let plain = try Store(path: folder.path("plain.db"), key: .numbered(1))
        let backup = try backUp(plain)
        try plain.close()
        try make(path, rowCount: 5).close()
        let keyring = URL(filePath: path + ".keyring")
        var area = [UInt8](try Data(contentsOf: keyring))[..<KeyringArea.byteCount]
        area[9] = 2
        let digest = SHA256.hash(data: area[..<16_352])
        area.replaceSubrange(16_352..., with: Array(digest))
        try Data(area + area).write(to: keyring)
        expect(.needsNewerProgram) { try restore(backup, key: .numbered(1)) }
        #expect(try Data(contentsOf: keyring) == Data(area + area))
        #expect(try !folder.names().contains { $0.contains(".old-") })
    }

    @Test func `a keyring without its file makes way for the keyring of the backup`() throws {
        let backed = try make(folder.path("first.db"), rowCount: 3)
        let backup = try backUp(backed)
        try backed.close()
        try make(path, rowCount: 5, Self.third).close()
        let lost = folder.path("lost.db")
        try FileLocation(backup).setPermissions(0o640)
        try FileManager.default.moveItem(atPath: path, toPath: lost)
        #expect(try restore(backup).oldPath == nil)
        #expect(try rowCount(path) == 3)
        for suffix in ["", ".keyring"] {
            #expect(try FileLocation(path + suffix).permissions() & 0o777 == 0o640)
        }
        try FileManager.default.moveItem(
            atPath: path + ".keyring.old-1", toPath: lost + ".keyring")
        #expect(try rowCount(lost, Self.third) == 5)
    }

    @Test func `a keyring that a killed restore has left at the other name is not overwritten`()
        throws
    {
        let backed = try make(folder.path("first.db"), rowCount: 3)
        let backup = try backUp(backed)
        try backed.close()
        try make(path, rowCount: 5, Self.third).close()
        // Killed after the keyring of the backup was made: the old file has both names.
        let old = path + ".old-1"
        try FileManager.default.linkItem(atPath: path, toPath: old)
        try FileManager.default.moveItem(atPath: path + ".keyring", toPath: old + ".keyring")
        try FileManager.default.copyItem(atPath: backup + ".keyring", toPath: path + ".keyring")
        let plain = try Store(path: folder.path("plain.db"), key: .numbered(1))
        let other = folder.path("other.db")
        try plain.backup(to: other)
        try plain.close()
        let report = try restore(other, key: .numbered(1))
        #expect(report.oldPath == old)
        #expect(try rowCount(old, Self.third) == 5)
        #expect(
            try folder.names().filter { $0.contains(".keyring.old-") } == ["store.db.keyring.old-1"]
        )
    }

    @Test func `a store that was opened again by another root is backed up with that root`() throws
    {
        let store = try make(path, rowCount: 3)
        try store.suspend()
        let backed = try make(folder.path("first.db"), rowCount: 4, Self.third)
        let backup = try backUp(backed)
        try backed.close()
        for suffix in ["", ".keyring"] {
            try FileManager.default.removeItem(atPath: path + suffix)
            try FileManager.default.copyItem(atPath: backup + suffix, toPath: path + suffix)
        }
        removeCompanions(path)
        try store.reopen(with: .keyring(.keyFile(Self.third)))
        try store.resume()
        let copy = folder.path("copy.db")
        try store.backup(to: copy)
        try store.close()
        #expect(try rowCount(copy, Self.third) == 4)
    }

    private func removeCompanions(_ path: String) {
        for suffix in ["-wal", "-shm"] { unlinkIfPresent(path + suffix) }
    }

    @Test func `a restore that fails at a step leaves the old store and its keyring`() throws {
        let backed = try make(folder.path("first.db"), rowCount: 3)
        let backup = try backUp(backed)
        try backed.close()
        try make(path, rowCount: 5, Self.third).close()
        var step = 0
        while true {
            do {
                _ = try restore(backup, failingAt: step)
                break
            } catch {
                #expect((error as? StoreError)?.code == .io)
                #expect(try rowCount(path, Self.third) == 5, "stopped at step \(step)")
                #expect(try !folder.names().contains { $0.contains(".old-") })
            }
            step += 1
        }
        #expect(step >= 5)
        #expect(try rowCount(path) == 3)
    }
}
