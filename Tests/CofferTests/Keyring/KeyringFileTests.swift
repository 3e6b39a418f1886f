import Foundation
import Testing

@testable import Coffer

/// The file of a keyring: reading, locking and writing it.
@Suite(.againstHanging, .onOwnThreads) struct KeyringFileTests {
    private let folder: TemporaryFolder
    private let file: KeyringFile

    init() throws {
        folder = try TemporaryFolder()
        file = KeyringFile(of: try FileLocation(folder.path()))
    }

    private func make() throws -> RootKey {
        let root = RootKey.random()
        #expect(try file.make(KeyringArea(.fresh(root), under: root)))
        return root
    }

    private func bytes() throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: file.location.path)))
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: file.location.path))
    }

    @Test func `a missing keyring is none, and a made one has two equal areas`() throws {
        #expect(try file.areas() == nil)
        _ = try make()
        let bytes = try bytes()
        #expect(bytes.count == 32_768)
        #expect(bytes[..<16_384] == ArraySlice(bytes[16_384...]))
        #expect(try file.location.permissions() & 0o777 == 0o600)
        #expect(try folder.names() == ["store.db.keyring"])
    }

    @Test func `a keyring is never made over another one`() throws {
        _ = try make()
        let before = try bytes()
        let other = RootKey.random()
        #expect(try !file.make(KeyringArea(.fresh(other), under: other)))
        #expect(try bytes() == before)
        #expect(try folder.names() == ["store.db.keyring"])
    }

    @Test(.enabled(if: OtherUser.isPlayable, OtherUser.reason))
    func `a keyring that root makes belongs to the owner of the store`() throws {
        try Data([1]).write(to: URL(filePath: file.database.path))
        try OtherUser.giveAway(folder, file: 0o640, folder: 0o755)
        _ = try make()
        var (made, owned) = (stat(), stat())
        #expect(stat(file.location.path, &made) == 0 && stat(file.database.path, &owned) == 0)
        #expect(made.st_uid == owned.st_uid && made.st_gid == owned.st_gid)
        #expect(made.st_uid != geteuid())
        #expect(made.st_mode & 0o777 == 0o640)
    }

    @Test func `a change raises the generation in both areas`() throws {
        let root = try make()
        let lock = try KeyringLock(file, timeout: .zero)
        let area = try lock.change(under: root) { $0.rootBackupCount = 7 }.area
        #expect(area.content.generation == 2)
        let areas = try #require(try file.areas())
        #expect(areas.stored == [area, area])
        #expect(areas.authentic(under: root)?.content.rootBackupCount == 7)
    }

    @Test func `a change under another root is refused, and writes nothing`() throws {
        _ = try make()
        let before = try bytes()
        let lock = try KeyringLock(file, timeout: .zero)
        let other = RootKey.random()
        let error = #expect(throws: StoreError.self) {
            _ = try lock.change(under: other) { $0.rootBackupCount = 7 }.area
        }
        #expect(error?.code == .keyringMismatch)
        #expect(try bytes() == before)
    }

    @Test func `two changes at once exclude each other, also within a process`() throws {
        _ = try make()
        let first = try KeyringLock(file, timeout: .zero)
        let error = #expect(throws: StoreError.self) {
            _ = try KeyringLock(file, timeout: .milliseconds(30)).descriptor
        }
        #expect(error?.code == .busy)
        #expect(first.descriptor >= 0)
    }

    @Test func `many changes at once lose none`() async throws {
        let root = KeyBox(try make())
        let file = file
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<10 {
                        let lock = try KeyringLock(file, timeout: .seconds(60))
                        _ = try lock.change(under: root.key) { $0.rootBackupCount += 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        let areas = try #require(try file.areas())
        #expect(areas.current.map(\.content.rootBackupCount) == [80])
        #expect(areas.current.map(\.content.generation) == [81])
    }

    @Test func `a keyring that was renamed over before the lock was taken is opened again`() throws
    {
        let root = try make()
        var content = KeyringContent.fresh(root)
        content.rootBackupCount = 3
        let other = KeyringFile(
            at: try FileLocation(folder.path("other")), of: file.database)
        #expect(try other.make(KeyringArea(content, under: root)))
        let lockCount = Shared(0)
        var renamed = file
        renamed.willStep = { [location = file.location] step, _ throws(StoreError) in
            guard step == .lock else { return }
            lockCount.value += 1
            // The file of the first descriptor has lost its name then.
            if lockCount.value == 1 { _ = rename(other.location.path, location.path) }
        }
        let lock = try KeyringLock(renamed, timeout: .seconds(60))
        let area = try lock.change(under: root) { $0.rootBackupCount += 1 }.area
        #expect(area.content.rootBackupCount == 4)
        #expect(lockCount.value == 2)
        #expect(try file.areas()?.stored == [area, area])
    }

    @Test func `one damaged area does no harm, and the next change mends it`() throws {
        let root = try make()
        for area in 0..<2 {
            var damaged = try bytes()
            damaged[area * 16_384 + 700] ^= 1
            try write(damaged)
            let areas = try #require(try file.areas())
            #expect(areas.stored.map { $0 == nil } == [area == 0, area == 1])
            #expect(areas.staleIndex == area)
            let lock = try KeyringLock(file, timeout: .zero)
            let mended = try lock.change(under: root) { $0.rootBackupCount += 1 }.area
            #expect(try file.areas()?.stored == [mended, mended])
        }
    }

    @Test(arguments: [false, true])
    func
        `what an unfinished change has left is synced before the next one, even if that is refused`(
            isRefused: Bool
        ) throws
    {
        let root = try make()
        let old = try bytes()
        let first = try KeyringLock(file, timeout: .zero)
            .change(under: root) { $0.rootBackupCount += 1 }.area
        let new = try bytes()
        // The newer area is the first one, and perhaps only in memory.
        try write(Array(new[..<16_384] + old[16_384...]))
        let steps = Shared([KeyringFile.Step]())
        var file = file
        file.willStep = { step, _ throws(StoreError) in steps.value.append(step) }
        let lock = try KeyringLock(file, timeout: .zero)
        let level: [KeyringFile.Step] = [.lock, .write(area: 0), .sync, .write(area: 1), .sync]
        guard isRefused else {
            let area = try lock.change(under: root) { $0.rootBackupCount += 1 }.area
            #expect(try file.areas()?.stored == [area, area])
            #expect(steps.value.prefix(5) == level[...])
            return
        }
        expect(.notFound) {
            try lock.change(under: root) { _ throws(StoreError) in
                throw StoreError(.notFound, "no slot")
            }
        }
        #expect(steps.value == level)
        #expect(try file.areas()?.stored == [first, first])
    }

    @Test func `a keyring whose successor gets no name keeps its own name alone`() throws {
        let root = try make()
        let old = try bytes()
        var file = file
        file.willStep = { step, _ throws(StoreError) in
            if step == .adopt { throw StoreError(.io, "stopped") }
        }
        var content = KeyringContent.fresh(root)
        content.rootBackupCount = 1
        let area = try KeyringArea(content, under: root)
        expect(.io) { try file.replace(timeout: .zero) { area } }
        #expect(try bytes() == old)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 1)
    }

    @Test func `the area of higher generation counts, wherever it is`() throws {
        let root = try make()
        let old = try bytes()
        let lock = try KeyringLock(file, timeout: .zero)
        let area = try lock.change(under: root) { $0.rootBackupCount += 1 }.area
        let new = try bytes()
        try write(Array(old[..<16_384] + new[16_384...]))
        #expect(try file.areas()?.current == [area])
        #expect(try file.areas()?.staleIndex == 0)
        try write(Array(new[..<16_384] + old[16_384...]))
        #expect(try file.areas()?.current == [area])
        #expect(try file.areas()?.staleIndex == 1)
    }

    @Test func `of two areas of one generation the one that opens counts`() throws {
        let root = try make()
        var content = KeyringContent.fresh(root)
        content.rootBackupCount = 9
        let good = try KeyringArea(content, under: root)
        let bad = try KeyringArea(content, under: .random())
        for bytes in [good.bytes + bad.bytes, bad.bytes + good.bytes] {
            try write(bytes)
            #expect(try file.areas()?.current.count == 2)
            #expect(try file.areas()?.authentic(under: root) == good)
        }
    }

    @Test func `what is not a keyring is damaged, and says why`() throws {
        let path = file.location.path
        let root = try make()
        let good = try bytes()
        try write(Array(good.dropLast()))
        try expectDamaged("32767 bytes")
        try write([])
        try expectDamaged("0 bytes")
        try write([UInt8](repeating: 7, count: 32_768))
        try expectDamaged("digest")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(
            atPath: path, withDestinationPath: folder.path("elsewhere"))
        try expectDamaged("a link")
        try FileManager.default.removeItem(atPath: path)
        #expect(mkfifo(path, 0o600) == 0)
        try expectDamaged("not a regular file")
        #expect(root.bytes.byteCount == 32)
    }

    private func expectDamaged(_ reason: String) throws {
        let error = #expect(throws: StoreError.self) { _ = try file.areas() }
        #expect(error?.code == .keyringDamaged)
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
    }
}

extension TemporaryFolder {
    /// The names of all files in it, sorted.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: url.path).sorted()
    }
}

extension KeyringContent {
    /// A keyring in use, without a slot.
    static func fresh(_ root: borrowing RootKey) -> KeyringContent {
        KeyringContent(
            new: root, id: [UInt8](repeating: 7, count: 16), profile: .portable, state: .isInUse,
            now: 0)
    }
}
