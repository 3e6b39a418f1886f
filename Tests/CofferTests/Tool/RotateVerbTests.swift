import Foundation
import Testing

@testable import Coffer

/// `coffer rotate` and `coffer revoke`, from a shell.
@Suite(.againstHanging, .onOwnThreads) struct RotateVerbTests {
    private let folder: TemporaryFolder
    private let path: String
    private let secret: [String]

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        secret = ["--key-file", folder.path("file")]
        try Data(repeating: 42, count: 32).write(to: URL(filePath: folder.path("file")))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: folder.path("file"))
    }

    private func open() throws -> Store {
        try Store(
            path: path, key: .keyring(.keyFile([UInt8](repeating: 42, count: 32))),
            configuration: .testing())
    }

    private func make() throws -> Store {
        let store = try open()
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (randomblob(9000))")
        }
        return store
    }

    private func rotate(_ options: [String] = [], exitCode: Int32 = 0) throws -> Tool.Output {
        let output = try Tool.run(["rotate", path] + secret + options)
        #expect(output.exitCode == exitCode, "\(output.errorText)")
        return output
    }

    @Test func `it tells both epochs, and whom it locks out`() throws {
        try make().close()
        let output = try rotate()
        let epoch = try Keyring(of: path).epoch
        #expect(epoch > 1)
        #expect(output.text.contains("\(epoch), after 1"))
        #expect(output.text.contains("all of it under the new key"))
        #expect(output.errorText.contains("takes access from nobody who had the root key"))
        let store = try open()
        #expect(try store.read { tx in try tx.rows("SELECT v FROM t").count } == 1)
        try store.close()
    }

    @Test func `a store of this process goes on beside it`() throws {
        let store = try make()
        for count in 1...2 {
            _ = try rotate()
            #expect(try store.read { tx in try tx.rows("SELECT v FROM t").count } == count)
            try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        }
        #expect(try store.verify().isGood)
        try store.close()
    }

    @Test func `a read that keeps the old pages makes it 18, and a checkpoint finishes`() throws {
        let store = try make()
        let snapshot = try store.snapshot()
        let output = try rotate(exitCode: 18)
        #expect(output.errorText.contains("still has the old key"))
        #expect(output.errorText.contains("coffer checkpoint"))
        try snapshot.close()
        try store.close()
        let checkpoint = try Tool.run(["checkpoint", path] + secret)
        #expect(checkpoint.exitCode == 0, "\(checkpoint.errorText)")
        let again = try open()
        #expect(try again.opensWithoutWAL())
        try again.close()
    }

    @Test func `a pause that is too long is 25, and nothing is changed`() throws {
        try make().close()
        let output = try rotate(["--pause-max", "0.000001"], exitCode: 25)
        #expect(output.errorText.contains("would wait"))
        #expect(try Keyring(of: path).epoch == 1)
        #expect(try Tool.run(["rotate", path, "--pause-max", "0"] + secret).exitCode == 2)
    }

    @Test func `a new root keeps the slots that are named, and leaves the dropped ones out`() throws
    {
        let store = try make()
        try store.keys.add(.passphrase("ops"), label: "ops")
        try store.keys.add(.passphrase("leaver"), label: "leaver")
        let rootID = try store.keys.keyring.rootID
        try store.close()
        let text = folder.path("ops")
        try Data("ops\n".utf8).write(to: URL(filePath: text))
        let unnamed = try rotate(["--root", "--drop", "3"], exitCode: 19)
        #expect(unnamed.errorText.contains("no secret is named for slot 2 (ops), a passphrase"))
        #expect(unnamed.errorText.contains("--keep 2=FILE"))
        _ = try rotate(["--root", "--drop", "3", "--keep", "2=\(path)"], exitCode: 12)
        _ = try rotate(["--root", "--drop", "7"], exitCode: 10)
        _ = try rotate(["--root", "--drop", "1", "--drop", "2", "--drop", "3"], exitCode: 13)
        for options in [["--drop", "3"], ["--keep", "2=x"], ["--root", "--keep", "x"]] {
            _ = try rotate(options, exitCode: 2)
        }
        let kept = ["--keep", "2=\(text)"]
        _ = try rotate(["--root", "--drop", "2", "--drop", "3"] + kept, exitCode: 2)
        #expect(try Keyring(of: path).rootID == rootID)
        let output = try rotate(["--root", "--drop", "3"] + kept)
        let keyring = try Keyring(of: path)
        #expect(keyring.rootID != rootID && keyring.slots.map(\.id) == [1, 2])
        #expect(output.text.contains("\(keyring.rootID), after \(rootID)"))
        #expect(output.errorText.contains("make new ones"))
        let again = try Store(
            path: path, key: .keyring(.passphrase("ops")), configuration: .testing())
        #expect(try again.read { tx in try tx.rows("SELECT v FROM t").count } == 1)
        try again.close()
    }

    @Test func `a revoked slot opens nothing, and the others what was written since`() throws {
        let store = try make()
        try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
        let rootID = try store.keys.keyring.rootID
        // It has the former root and the slot of the leaver.
        let old = try Data(contentsOf: URL(filePath: path + ".keyring"))
        try store.close()
        #expect(try Tool.run(["revoke", path] + secret).exitCode == 2)
        let output = try Tool.run(["revoke", path, "2"] + secret)
        #expect(output.exitCode == 0, "\(output.errorText)")
        let keyring = try Keyring(of: path)
        #expect(keyring.rootID != rootID && keyring.slots.map(\.id) == [1])
        #expect(output.text.contains("\(keyring.rootID), after \(rootID)"))
        #expect(try Tool.run(["revoke", path, "2"] + secret).exitCode == 10)
        let new = try Data(contentsOf: URL(filePath: path + ".keyring"))
        for (bytes, code) in [(new, StoreError.Code.wrongKey), (old, .keyringMismatch)] {
            try bytes.write(to: URL(filePath: path + ".keyring"))
            expect(code) {
                try Store(
                    path: path, key: .keyring(.keyFile([UInt8](repeating: 7, count: 32))),
                    configuration: .testing())
            }
        }
        try new.write(to: URL(filePath: path + ".keyring"))
        let again = try open()
        #expect(try again.read { tx in try tx.rows("SELECT v FROM t").count } == 1)
        try again.close()
    }

    @Test func `a restore that undoes a rotation or a revocation says so`() throws {
        let store = try make()
        try store.keys.add(.keyFile([UInt8](repeating: 7, count: 32)), label: "leaver")
        try store.close()
        func backUp(_ name: String) throws -> [String] {
            let backup = folder.path(name)
            #expect(try Tool.run(["backup", path, backup] + secret).exitCode == 0)
            return ["restore", backup, path] + secret
        }
        let fresh = try Tool.run(try backUp("fresh"))
        #expect(fresh.exitCode == 0 && !fresh.errorText.contains("warning"), "\(fresh.errorText)")
        let beforeRotation = try backUp("first")
        _ = try rotate()
        let rotated = try Keyring(of: path)
        let undone = try Tool.run(beforeRotation)
        #expect(undone.exitCode == 0)
        #expect(undone.errorText.contains("epoch 1 again, after \(rotated.epoch): coffer rotate"))
        #expect(try Tool.run(["revoke", path, "2"] + secret).exitCode == 0)
        let unrevoked = try Tool.run(beforeRotation)
        #expect(unrevoked.exitCode == 0)
        #expect(unrevoked.errorText.contains("lost their access since has it again"))
        #expect(try Keyring(of: path).slots.count == 2)
    }

    @Test func `a store without keyring is 15, and another rotation is 11`() throws {
        try make().close()
        let keyring = KeyringFile(of: try FileLocation(path))
        let lock = try KeyringByteLock(keyring, .rotates, timeout: .zero)
        let busy = try rotate(["--busy-timeout", "0"], exitCode: 11)
        #expect(busy.errorText.contains("rotating"))
        lock.release()
        try FileManager.default.removeItem(atPath: path + ".keyring")
        _ = try rotate(exitCode: 15)
    }
}
