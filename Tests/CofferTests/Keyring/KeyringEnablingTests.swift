import Foundation
import Synchronization
import Testing

@testable import Coffer

/// `enableKeyring`: a store with a key of its own gets a keyring.
@Suite(.againstHanging, .onOwnThreads) struct KeyringEnablingTests {
    private let folder: TemporaryFolder
    private let path: String
    private static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func make(_ journalMode: Configuration.JournalMode = .wal) throws {
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(journalMode))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v BLOB)")
            for _ in 0..<200 { try tx.execute("INSERT INTO t VALUES (randomblob(500))") }
        }
        try store.close()
    }

    @discardableResult
    private func enable(
        from key: UInt8 = 1, as file: [UInt8] = Self.file, endsOtherPrograms: Bool = false,
        _ configuration: Configuration = .testing(),
        recovery: ((UnsafeRawBufferPointer) throws -> [UInt8])? = nil,
        willStep: (@Sendable (KeyringFile.Step) throws(StoreError) -> Void)? = nil
    ) throws -> KeyringEnablingReport {
        var configuration = configuration
        if let willStep {
            configuration.keyringWillStep = { step, _ throws(StoreError) in try willStep(step) }
        }
        return try Store.enableKeyring(
            path, key: .numbered(key), as: .keyFile(file), label: "ops",
            endsOtherPrograms: endsOtherPrograms, configuration: configuration,
            recovery: recovery)
    }

    /// The number of rows that a key gives access to.
    private func rowCount(_ key: borrowing StoreKey) throws -> Int {
        let store = try Store(
            path: path, key: key, mode: .mustExist, configuration: .testing())
        defer { try? store.close() }
        #expect(try store.verify().isGood)
        return try store.read { tx in try tx.rows("SELECT v FROM t").count }
    }

    private func expectEnabled(sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(
            try rowCount(.keyring(.keyFile(Self.file))) == 200, sourceLocation: sourceLocation)
        #expect(throws: StoreError.self, sourceLocation: sourceLocation) {
            try rowCount(.numbered(1))
        }
        let keyring = KeyringFile(of: try FileLocation(path))
        let content = try #require(try keyring.areas()).current[0].content
        #expect(content.state == .isInUse && content.epoch == 1, sourceLocation: sourceLocation)
    }

    @Test(arguments: journalModes)
    func `a store gets a keyring, keeps its rows, and its former key opens nothing`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let report = try enable(endsOtherPrograms: mode == .delete)
        #expect(report.isChanged && report.isWholeFile && report.pageCount > 20)
        try expectEnabled()
        let store = try Store(
            path: path, key: .keyring(.keyFile(Self.file)), configuration: .testing(mode))
        #expect(store.journalMode == mode)
        #expect(try store.keys.slots.map(\.label) == ["ops"])
        #expect(try store.rotate().epoch > 1)
        try store.close()
    }

    @Test func `a passphrase becomes a credential, without blocking a thread`() async throws {
        try await Store(
            path: path, key: .passphrase("former"), configuration: .testing()
        ).close()
        let report = try await Store.enableKeyring(
            path, key: .passphrase("former"), as: .passphrase("former"), label: "",
            configuration: .testing(), recovery: nil)
        #expect(report.isChanged)
        try await Store(
            path: path, key: .keyring(.passphrase("former")), mode: .mustExist,
            configuration: .testing()
        ).close()
    }

    @Test func `a recovery key opens the store, and counts only if it came back`() throws {
        try make()
        #expect(throws: StoreError.self) { try enable(recovery: { _ in Array("other".utf8) }) }
        #expect(try !Keyring.exists(for: path))
        #expect(try rowCount(.numbered(1)) == 200)
        var letters: [UInt8] = []
        try enable(recovery: {
            letters = Array($0)
            return letters
        })
        #expect(try rowCount(.keyring(.recoveryKey(letters))) == 200)
        #expect(try Keyring(of: path).slots.map(\.label) == ["ops", "recovery"])
    }

    // MARK: Refusals

    @Test func `a program that has the store open prevents it, unless it may lose its access`()
        throws
    {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        _ = peer.line()
        let refusal = #expect(throws: StoreError.self) { try enable() }
        #expect(refusal?.code == .busy && refusal?.hint?.contains("endsOtherPrograms") == true)
        #expect(try !Keyring.exists(for: path))
        // Its read keeps the pages of before.
        #expect(try !enable(endsOtherPrograms: true).isWholeFile)
        _ = peer.finish()
        try expectEnabled()
    }

    @Test func `without a WAL nobody can see other programs`() throws {
        try make(.delete)
        let refusal = #expect(throws: StoreError.self) { try enable() }
        #expect(refusal?.code == .busy)
        #expect(try !Keyring.exists(for: path))
    }

    @Test func `a busy writer leaves the former key, and no keyring`() throws {
        try make()
        let peer = try Peer(["hold-write", "wal", path, "1"])
        _ = peer.line()
        let refusal = #expect(throws: StoreError.self) {
            try enable(endsOtherPrograms: true, .impatient())
        }
        #expect(refusal?.code == .busy)
        #expect(try !Keyring.exists(for: path))
        _ = peer.finish()
        #expect(try rowCount(.numbered(1)) == 200)
    }

    @Test func `a wrong key, an open store, a keyring and a credential change nothing`() throws {
        try make()
        #expect(throws: StoreError.self) { try enable(from: 2) }
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        #expect(throws: StoreError.self) { try enable() }
        try store.close()
        #expect(throws: StoreError.self) {
            try Store.enableKeyring(
                path, key: .keyring(.keyFile(Self.file)), as: .keyFile(Self.file), label: "",
                configuration: .testing(), recovery: nil)
        }
        #expect(throws: StoreError.self) { try enable(as: [1, 2, 3]) }
        #expect(try !Keyring.exists(for: path))
        let other = folder.path("other.db")
        try Store(
            path: other, key: .keyring(.keyFile(Self.file)), configuration: .testing()
        ).close()
        try FileManager.default.copyItem(
            atPath: other + KeyringFile.suffix, toPath: path + KeyringFile.suffix)
        let refusal = #expect(throws: StoreError.self) { try enable() }
        #expect(refusal?.code == .alreadyExists)
        #expect(try rowCount(.numbered(1)) == 200)
    }

    @Test func `a disk that fails leaves the former key, and no keyring`() throws {
        try make()
        for failing in [KeyringFile.Step.make, .sync, .adopt] {
            let refusal = #expect(throws: StoreError.self) {
                try enable(willStep: { (step) throws(StoreError) in
                    if step == failing { throw StoreError(.full, "no room") }
                })
            }
            #expect(refusal?.code == .full)
            #expect(try !Keyring.exists(for: path))
            #expect(try rowCount(.numbered(1)) == 200)
        }
        // The change has happened by then.
        try enable(willStep: { (step) throws(StoreError) in
            if case .write = step { throw StoreError(.full, "no room") }
        })
        try expectEnabled()
    }

    // MARK: Repeated calls

    @Test func `a call that was interrupted before the change begins again`() throws {
        try make()
        try KeyringFixture.leaveUnusedKeyring(at: path)
        #expect(try rowCount(.numbered(1)) == 200)
        for key in [UInt8(7), 8] {
            let refusal = #expect(throws: StoreError.self) {
                try rowCount(.keyring(.keyFile([UInt8](repeating: key, count: 32))))
            }
            #expect(refusal?.hint?.contains("enableKeyring") == true, "\(refusal as Any)")
        }
        #expect(try enable().isChanged)
        try expectEnabled()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.sorted() == ["store.db", "store.db.keyring"])
    }

    @Test func `the keyring of a call that changes the key meanwhile is not replaced`() throws {
        try make()
        try KeyringFixture.leaveUnusedKeyring(at: path)
        let other = [UInt8](repeating: 7, count: 32)
        let root = KeyBox(
            try #require(try KeyringFile(of: FileLocation(path)).areas()).unlocked(
                by: .keyFile(other), memoryMax: KeyringFixture.memoryMax
            ).root.copy())
        let id = try KeyringFile(of: FileLocation(path)).areas()?.current[0].content.id ?? []
        let hasChanged = Atomic(false)
        let refusal = #expect(throws: StoreError.self) {
            try enable(willStep: { [path] (step) throws(StoreError) in
                guard step == .adopt, !hasChanged.exchange(true, ordering: .relaxed) else { return }
                // What the other call does next.
                do {
                    let store = try Store(
                        path: path, key: .numbered(1), configuration: .testing())
                    _ = try store.core.rekey(
                        to: root.key.dataKey(epoch: 1, id: id).storeKey(), .keep)
                    try store.close()
                } catch {
                    Issue.record(error)
                }
            })
        }
        #expect(refusal?.code == .alreadyExists)
        #expect(try rowCount(.keyring(.keyFile(other))) == 200)
    }

    @Test func `the key does not change if another call has put its keyring there`() throws {
        try make()
        let enabling = KeyringEnabling(
            path: path, configuration: .testing(), endsOtherPrograms: false)
        let facts = try enabling.look(.numbered(1))
        let keyring = KeyringFile(of: facts.file)
        // Of the same credential.
        let other = try UnlockedKeyring.new(
            for: .keyFile(Self.file), id: facts.id, profile: facts.profile,
            state: .isBeingEnabled, .testing())
        try keyring.makeNew(other.area)
        let refusal = #expect(throws: StoreError.self) {
            try enabling.change(
                facts, from: .numbered(1), to: KeyBox(.random()), other.area,
                by: .keyFile(Self.file), in: keyring)
        }
        #expect(refusal?.code == .busy)
        #expect(try rowCount(.numbered(1)) == 200)
    }

    @Test func `a keyring that somebody moves away behind the change is written again`() throws {
        try make()
        let keyring = try KeyringFile(of: FileLocation(path)).location.path
        let isMoved = Atomic(false)
        try enable(willStep: { (step) throws(StoreError) in
            guard step == .lock, !isMoved.exchange(true, ordering: .relaxed) else { return }
            rename(keyring, keyring + ".away")
        })
        let wasMoved = isMoved.load(ordering: .relaxed)
        #expect(wasMoved)
        #expect(try rowCount(.keyring(.keyFile(Self.file))) == 200)
    }

    @Test func `what prevents the change is not told as a wrong key`() throws {
        try make()
        try enable()
        let keyring = try KeyringFile(of: FileLocation(path)).location.path
        try Data(repeating: 7, count: KeyringFile.byteCount).write(to: URL(filePath: keyring))
        let refusal = #expect(throws: StoreError.self) { try enable() }
        #expect(refusal?.code == .keyringDamaged)
    }

    @Test func `a backup of before is restored with its own key`() throws {
        try make()
        let backup = folder.path("backup.db")
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try store.backup(to: backup)
        try store.close()
        try enable()
        let report = try Store.restore(
            from: backup, key: .numbered(1), to: path, configuration: .testing())
        #expect(!report.keepsKeyring)
        #expect(try rowCount(.numbered(1)) == 200)
        #expect(try !Keyring.exists(for: path))
    }

    @Test func `a call that was interrupted behind the change finishes`() throws {
        try make()
        try enable()
        let keyring = KeyringFile(of: try FileLocation(path))
        let unlocked = try #require(try keyring.areas()).unlocked(
            by: .keyFile(Self.file), memoryMax: KeyringFixture.memoryMax)
        try KeyringLock(keyring, timeout: .zero).change(under: unlocked.root) {
            $0.state = .isBeingEnabled
        }
        #expect(throws: StoreError.self) { try enable(as: [UInt8](repeating: 1, count: 32)) }
        #expect(try !enable().isChanged)
        try expectEnabled()
    }

    @Test func `of two calls at the same time one gives the store its keyring`() async throws {
        try make()
        let files = (UInt8(1)...4).map { [UInt8](repeating: $0, count: 32) }
        // A second call in this process is refused while the first one has the store open.
        let done = await withTaskGroup(of: [UInt8]?.self) { group in
            for file in files {
                group.addTask { (try? enable(as: file))?.isChanged == true ? file : nil }
            }
            return await group.reduce(into: [[UInt8]]()) { done, file in
                if let file { done.append(file) }
            }
        }
        #expect(done.count <= 1)
        if done.isEmpty { try enable(as: files[0]) }
        #expect(try rowCount(.keyring(.keyFile(done.first ?? files[0]))) == 200)
    }
}
