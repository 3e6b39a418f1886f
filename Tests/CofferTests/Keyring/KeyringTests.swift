import Foundation
import Testing

@testable import Coffer

/// Reading, restoring and rebuilding a keyring without opening its store.
@Suite(.againstHanging, .onOwnThreads) struct KeyringTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)
    private static let other = [UInt8](repeating: 43, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func open(
        _ path: String, _ bytes: [UInt8] = file, mode: OpenMode = .mustExist,
        profile: CipherProfile? = nil
    ) throws -> Store {
        try Store(
            path: path, key: .keyring(.keyFile(bytes)), mode: mode,
            configuration: .testing(profile: profile))
    }

    private func keyringBytes(_ path: String) throws -> Data {
        try Data(contentsOf: URL(filePath: path + ".keyring"))
    }

    private func rootBackup(_ store: Store) throws -> [UInt8] {
        try store.keys.withRootBackup { Array($0) }
    }

    // MARK: Reading

    @Test func `a keyring tells its slots, its keys and their ages without a secret`() throws {
        let store = try open(path, mode: .createIfMissing)
        try store.keys.add(.external { _ in [1, 2, 3] }, label: "kms")
        _ = try rootBackup(store)
        let keyring = try Keyring(of: path)
        #expect(try keyring.slots == store.keys.slots)
        #expect(try keyring.keyID == store.keyID())
        #expect(keyring.epoch == 1 && keyring.rootID.count == 32)
        #expect(keyring.profile == store.profile)
        #expect(abs(keyring.rootMade.timeIntervalSinceNow) < 600)
        #expect(keyring.keyMade == keyring.rootMade)
        #expect(keyring.rootBackups.count == 1 && keyring.rootBackups.last != nil)
        #expect(try keyring.blob(of: 2) == [1, 2, 3])
        expect(.misuse) { _ = try keyring.blob(of: 1) }
        expect(.notFound) { _ = try keyring.blob(of: 3) }
        expect(.keyringMissing) { _ = try Keyring(of: folder.path("none.db")) }
        try store.close()
    }

    // MARK: Restoring

    @Test func `a lost keyring is restored from a copy, once the copy has opened the store`() throws
    {
        let store = try open(path, mode: .createIfMissing)
        let copy = folder.path("copy")
        try store.keys.backUp(to: copy)
        try store.close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        expect(.wrongKey) { try Keyring.restore(from: copy, for: path, by: .keyFile(Self.other)) }
        #expect(try !folder.names().contains("store.db.keyring"))
        let replaced = try Keyring.restore(from: copy, for: path, by: .keyFile(Self.file))
        #expect(replaced == nil)
        try open(path).close()
    }

    @Test(arguments: [0, 100, 32_768])
    func `a replaced keyring gets another name, damaged or not`(byteCount: Int) throws {
        let store = try open(path, mode: .createIfMissing)
        let copy = folder.path("copy")
        try store.keys.backUp(to: copy)
        try store.close()
        let there =
            byteCount == 32_768
            ? try keyringBytes(path) : Data(repeating: 7, count: byteCount)
        try there.write(to: URL(filePath: path + ".keyring"))
        let replaced = try Keyring.restore(from: copy, for: path, by: .keyFile(Self.file))
        #expect(replaced == path + ".keyring.old-1")
        #expect(try Data(contentsOf: URL(filePath: path + ".keyring.old-1")) == there)
        try open(path).close()
    }

    @Test func `a restored keyring goes on counting where the present one was`() throws {
        let store = try open(path, mode: .createIfMissing)
        let copy = folder.path("copy")
        try store.keys.add(.keyFile([UInt8](repeating: 44, count: 32)), label: "gone")
        try store.keys.backUp(to: copy)
        let added = try store.keys.add(.keyFile([UInt8](repeating: 45, count: 32)), label: "")
        try store.keys.remove(added.id)
        try store.keys.withRootBackup { _ in }
        try store.close()
        try Keyring.restore(from: copy, for: path, by: .keyFile(Self.file))
        #expect(try Keyring(of: path).rootBackups.count == 1)
        let again = try Store(path: path, key: .keyring(.keyFile(Self.file)), mode: .mustExist)
        let next = try again.keys.add(.keyFile([UInt8](repeating: 46, count: 32)), label: "")
        #expect(next.id == added.id + 1)
        try again.close()
    }

    @Test(arguments: [0, 1])
    func `one damaged copy of the content is seen, and the next change mends it`(
        area: Int
    ) throws {
        let store = try open(path, mode: .createIfMissing)
        #expect(try Keyring(of: path).isWhole)
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path + ".keyring")))
        bytes[area * 16_384 + 700] ^= 1
        try Data(bytes).write(to: URL(filePath: path + ".keyring"))
        #expect(try !Keyring(of: path).isWhole)
        #expect(try !store.keys.keyring.isWhole)
        try store.keys.add(.keyFile([UInt8](repeating: 44, count: 32)), label: "")
        #expect(try Keyring(of: path).isWhole)
        try store.close()
    }

    @Test func `a keyring of another store is not restored`() throws {
        try open(path, mode: .createIfMissing).close()
        let other = try open(folder.path("other.db"), mode: .createIfMissing)
        let copy = folder.path("copy")
        try other.keys.backUp(to: copy)
        try other.close()
        let before = try keyringBytes(path)
        expect(.keyringMismatch) {
            try Keyring.restore(from: copy, for: path, by: .keyFile(Self.file))
        }
        expect(.notFound) {
            try Keyring.restore(
                from: folder.path("none"), for: path, by: .keyFile(Self.file))
        }
        #expect(try keyringBytes(path) == before)
        #expect(try !folder.names().contains { $0.contains(".old-") })
    }

    // MARK: Rebuilding

    @Test(arguments: supportedProfiles)
    func `a root backup rebuilds a lost keyring, in every profile`(
        profile: CipherProfile
    ) throws {
        let store = try open(path, mode: .createIfMissing, profile: profile)
        let letters = try rootBackup(store)
        let keyID = try store.keyID()
        try store.close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try Keyring.rebuild(
            for: path, rootBackup: letters, as: .keyFile(Self.other), label: "new")
        let keyring = try Keyring(of: path)
        #expect(keyring.slots.map(\.label) == ["new"])
        #expect(keyring.keyID == keyID && keyring.profile == profile)
        #expect(keyring.rootBackups.count == 1)
        try open(path, Self.other).close()
        expect(.wrongKey) { _ = try open(path) }
    }

    @Test func `a root backup rebuilds a keyring for pages of another size`() throws {
        let profile = try CipherProfile.portable.with(pageByteCount: 8192)
        let store = try open(path, mode: .createIfMissing, profile: profile)
        let letters = try rootBackup(store)
        try store.close()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        try Keyring.rebuild(
            for: path, rootBackup: letters, as: .keyFile(Self.other), label: "new")
        #expect(try Keyring(of: path).profile == profile)
        try open(path, Self.other).close()
    }

    @Test func `a keyring with the ids of other keys is refused`() throws {
        try open(path, mode: .createIfMissing).close()
        let file = KeyringFile(of: try FileLocation(path))
        let areas = try #require(try file.areas())
        let unlocked = try areas.unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        for isOfRoot in [true, false] {
            var content = unlocked.area.content
            if isOfRoot { content.rootID[3] ^= 1 } else { content.keyID[3] ^= 1 }
            let area = try KeyringArea(content, under: unlocked.root)
            try Data(area.bytes + area.bytes).write(to: URL(filePath: path + ".keyring"))
            expect(.keyringDamaged) { try open(path).close() }
        }
    }

    /// The last one is beyond every clock of the test: a minute in a release build.
    @Test(arguments: [40, 300, 5000] + (isLongRun ? [1_100_000] : []) as [UInt32])
    func `a keyring is rebuilt for a file of any epoch`(epoch: UInt32) throws {
        let store = try open(path, mode: .createIfMissing)
        let letters = try rootBackup(store)
        try store.close()
        let areas = try #require(try KeyringFile(of: FileLocation(path)).areas())
        let unlocked = try areas.unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        let id = unlocked.area.content.id
        try FileManager.default.removeItem(atPath: path + ".keyring")
        let old = try Store(path: path, key: unlocked.root.dataKey(epoch: 1, id: id).storeKey())
        try old.rekey(to: unlocked.root.dataKey(epoch: epoch, id: id).storeKey())
        try old.close()
        var configuration = Configuration.testing()
        // The search by the clock ends at 65.
        configuration.currentDate = { Date(timeIntervalSince1970: 1_577_836_800) }
        configuration.profile = unlocked.area.content.profile
        var counts: [Int] = []
        try Keyring.rebuild(
            for: path, rootBackup: letters, as: .keyFile(Self.other), label: "new",
            configuration: configuration
        ) { progress in
            counts.append(progress.count)
            #expect(progress.count < progress.countTotal)
        }
        #expect(try Keyring(of: path).epoch == Int(epoch))
        #expect(counts.isEmpty == (epoch < 4096))
        #expect(counts == counts.sorted())
        try open(path, Self.other).close()
    }

    @Test func `a root backup of another store, or with a slip, makes nothing`() throws {
        try open(path, mode: .createIfMissing).close()
        let other = try open(folder.path("other.db"), mode: .createIfMissing)
        var letters = try rootBackup(other)
        try other.close()
        let before = try keyringBytes(path)
        var configuration = Configuration.testing()
        configuration.profile = try Keyring(of: path).profile
        func rebuild() throws {
            try Keyring.rebuild(
                for: path, rootBackup: letters, as: .keyFile(Self.other), label: "",
                configuration: configuration)
        }
        if isLongRun { expect(.keyringMismatch) { try rebuild() } }
        letters[10] = letters[10] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
        expect(.misuse) { try rebuild() }
        letters = Array(letters.dropFirst(5))
        expect(.misuse) { try rebuild() }
        #expect(try keyringBytes(path) == before)
    }
}
