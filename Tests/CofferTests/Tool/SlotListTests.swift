import Crypto
import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// Verbs that give or take credentials, for several stores at once.
@Suite(.againstHanging, .onOwnThreads) struct SlotListTests {
    private let stores: RotatedStores
    private static let leaver = [UInt8](repeating: 7, count: 32)

    init() throws {
        stores = try RotatedStores()
        try stores.writeSecret(Self.leaver, to: "leaver")
    }

    /// Makes stores in which a slot for the key file `leaver` has the label `anna`, and another
    /// number in each.
    private func makeStores(_ names: [String]) throws {
        for (number, name) in names.enumerated() {
            let store = try stores.open(name)
            try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
            for other in 0..<number {
                let key = [UInt8](repeating: UInt8(100 + other), count: 32)
                try store.keys.remove(store.keys.add(.keyFile(key), label: "x").id)
            }
            try store.keys.add(.keyFile(Self.leaver), label: "anna")
            try store.close()
        }
    }

    private func run(
        _ arguments: [String], input: Data = Data(), exitCode: Int32 = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(arguments, input: input)
        #expect(
            output.exitCode == exitCode, "\(output.text)\(output.errorText)",
            sourceLocation: sourceLocation)
        return output
    }

    private func labels(_ name: String) throws -> [String] {
        try Keyring(of: stores.path(name)).slots.map(\.label)
    }

    private func opens(_ name: String, _ key: [UInt8]) -> Bool {
        (try? Store(
            path: stores.path(name), key: .keyring(.keyFile(key)), mode: .mustExist,
            configuration: .testing()
        ).close()) != nil
    }

    @Test func `revoke takes a slot of one label from each store that has it`() throws {
        try makeStores(["a", "b", "c"])
        try stores.make("without")
        let names = ["a", "b", "c", "without"]
        let numbers = try ["a", "b", "c"].map {
            try #require(Keyring(of: stores.path($0)).slots.first { $0.label == "anna" }).id
        }
        #expect(Set(numbers).count == 3)
        let roots = try names.map { try Keyring(of: stores.path($0)).rootID }
        let listed = try run(["key", "list"] + names.map(stores.path))
        #expect(
            listed.text.contains(": epoch 1; slot 1 (first), key-file; slot 3 (anna), key-file\n"),
            "\(listed.text)")
        let command =
            ["revoke"] + names.map(stores.path) + stores.secret + [
                "--slot", "label:anna", "--report", stores.path("report"),
            ]
        let output = try run(command)
        #expect(output.text.contains("revoked:          3\n"), "\(output.text)")
        #expect(output.text.contains("without the slot: 1\n"), "\(output.text)")
        let now = try names.map { try Keyring(of: stores.path($0)).rootID }
        #expect(zip(roots, now).map { $0 == $1 } == [false, false, false, true])
        for name in ["a", "b", "c"] {
            #expect(try labels(name) == ["first"] && stores.events(name) == ["started", "rotated"])
            #expect(try stores.read("report").contains(#""droppedSlots":[{"changed""#))
            #expect(!opens(name, Self.leaver) && opens(name, RotatedStores.file))
        }
        // A killed run began with it, so it is opened, and its root stays.
        try stores.write(try stores.begun("without", at: 1) + "\n", to: "killed")
        let looked = try run(
            ["revoke", stores.path("without"), "--slot", "label:anna"] + stores.secret + [
                "--report", stores.path("killed"),
            ], exitCode: 10)
        #expect(looked.text.contains("without the slot: 1\n"), "\(looked.text)")
        #expect(try stores.lines(of: "killed").map(\.event) == ["started", "started", "current"])
        #expect(try Keyring(of: stores.path("without")).rootID == now[3])
        #expect(
            output.text.contains("\(stores.path("without")): it has slot 1 (first)\n"),
            "\(output.text)")
        // A store that cannot be looked at may have it.
        _ = try run(command + ["--slot", "label:anne"] + [stores.path("missing")], exitCode: 3)
        // Done already, or mistyped: the tool cannot know which.
        let again = try run(command, exitCode: 10)
        #expect(again.errorText.contains("has a slot label:anna"), "\(again.errorText)")
        #expect(try names.map { try Keyring(of: stores.path($0)).rootID } == now)
    }

    @Test func `a mistyped name of a slot changes nothing, in one store or in several`() throws {
        try makeStores(["a", "b"])
        let before = try ["a", "b"].map {
            try Data(contentsOf: URL(filePath: stores.path($0) + ".keyring"))
        }
        for names in [["a"], ["a", "b"]] {
            let paths = names.map(stores.path)
            for name in ["label:ana", "label:Anna", "fingerprint:0123456789abcdef"] {
                _ = try run(
                    ["revoke"] + paths + stores.secret + ["--slot", name], exitCode: 10)
                _ = try run(
                    ["rotate", "--root", "--drop", name] + paths + stores.secret, exitCode: 10)
            }
            for name in ["anna", "fingerprint:12", "label:", "-1"] {
                _ = try run(
                    ["revoke"] + paths + stores.secret + ["--slot=\(name)"], exitCode: 2)
            }
        }
        let two = ["a", "b"].map(stores.path)
        _ = try run(["revoke"] + two + stores.secret, exitCode: 2)
        _ = try run(
            ["key", "remove"] + two + stores.secret + ["--slot", "label:ana"], exitCode: 10)
        _ = try run(["key", "remove", two[0], "2", "9"] + stores.secret, exitCode: 10)
        let plan = try run(
            ["revoke"] + two + stores.secret + ["--slot", "label:ana", "--dry-run"], exitCode: 10)
        #expect(plan.stdout.isEmpty)
        let after = try ["a", "b"].map {
            try Data(contentsOf: URL(filePath: stores.path($0) + ".keyring"))
        }
        #expect(before == after)
    }

    @Test func `a name of a slot drops it from one store, and keeps it too`() throws {
        try makeStores(["a"])
        let store = try stores.open("a")
        let recipient = try store.keys.add(
            .recipient(Curve25519.KeyAgreement.PrivateKey().publicKey.rawRepresentation),
            label: "service")
        try store.keys.add(.passphrase("ops"), label: "ops")
        try store.close()
        try stores.write("ops\n", to: "ops")
        let path = stores.path("a")
        let print = try #require(recipient.fingerprint)
        let kept = ["--keep", "label:ops=\(stores.path("ops"))", "--keep", "label:none=none"]
        let plan = try run(
            ["revoke", path, "--slot", "label:anna", "--dry-run"] + stores.secret + kept)
        #expect(plan.text.contains("without slot 2 (anna)"), "\(plan.text)")
        #expect(try labels("a").count == 4)
        let output = try run(
            ["revoke", path, "label:anna", "fingerprint:\(print.uppercased())"] + stores.secret
                + kept)
        #expect(try labels("a") == ["first", "ops"], "\(output.text)")
        _ = try run(
            ["rotate", path, "--root", "--drop", "label:ops"] + stores.secret)
        #expect(try labels("a") == ["first"])
        let young = try run(
            ["rotate", path, "--root", "--older-than", "1d", "--drop", "label:ops"]
                + stores.secret)
        #expect(young.errorText.contains("there is no slot label:ops"), "\(young.errorText)")
    }

    @Test func `revoke takes no store for done that may have the slot`() throws {
        try makeStores(["a", "c"])
        let other = try stores.open("b")
        try other.keys.add(.keyFile(Self.leaver), label: "Anna ")
        try other.close()
        let paths = ["a", "b"].map(stores.path)
        func revoke(_ options: [String], exitCode: Int32) throws -> Tool.Output {
            try run(["revoke"] + options + stores.secret, exitCode: exitCode)
        }
        // An unfinished run excuses no other name.
        try stores.write(try stores.begun("a", at: 1) + "\n", to: "report")
        let mistyped = try revoke(
            paths + ["--slot", "label:ana", "--report", stores.path("report")], exitCode: 10)
        #expect(mistyped.errorText.contains("has a slot label:ana"), "\(mistyped.errorText)")
        // One store: the same answer with options of a list as without.
        for options in [[], ["--jobs", "1"]] {
            _ = try revoke([paths[0], "9"] + options, exitCode: 10)
        }
        // Each store numbers its slots by itself.
        _ = try revoke(paths + ["--slot", "2"], exitCode: 2)
        _ = try run(["key", "remove"] + paths + ["--slot", "2"] + stores.secret, exitCode: 2)
        let contradiction = try revoke(
            [paths[0], "label:anna", "--keep", "label:anna=\(stores.path("leaver"))"],
            exitCode: 2)
        #expect(contradiction.errorText.contains("slot 2 (anna), which does not stay"))
        #expect(opens("a", Self.leaver))
        // Somebody without a secret has renamed the slot in one store: its digest is right.
        try forgeLabel(of: "a", from: "anna", to: "annb")
        let forged = try revoke(
            [paths[0], stores.path("c"), "--slot", "label:anna"], exitCode: 3)
        #expect(forged.text.contains("somebody without its root key has changed it"))
        #expect(!opens("c", Self.leaver))
        try forgeLabel(of: "a", from: "annb", to: "anna")
        let warned = try revoke([paths[1], paths[0], "--slot", "label:anna"], exitCode: 0)
        #expect(warned.text.contains("looks the same, and is not"), "\(warned.text)")
    }

    /// Changes a label in the keyring, with a digest that fits.
    private func forgeLabel(of name: String, from old: String, to new: String) throws {
        let url = URL(filePath: stores.path(name) + ".keyring")
        var bytes = [UInt8](try Data(contentsOf: url))
        for start in stride(from: 0, to: bytes.count, by: KeyringArea.byteCount) {
            let end = start + KeyringArea.byteCount
            guard
                let place = bytes[start..<end].firstRange(of: Array(old.utf8))
            else { continue }
            bytes.replaceSubrange(place, with: Array(new.utf8))
            let digest = SHA256.hash(data: bytes[start..<end - SHA256.byteCount])
            bytes.replaceSubrange(end - SHA256.byteCount..<end, with: Array(digest))
        }
        try Data(bytes).write(to: url)
    }

    @Test func `remove takes slots away by their name, and leaves one`() throws {
        try makeStores(["a", "b"])
        let store = try stores.open("a")
        try store.keys.add(.keyFile([UInt8](repeating: 8, count: 32)), label: "anna")
        try store.close()
        try stores.make("c")
        let paths = ["a", "b", "c"].map(stores.path)
        let output = try run(
            ["key", "remove"] + paths + stores.secret + ["--slot", "label:anna"])
        #expect(
            output.text.contains("\(paths[0]): slot 2 (anna), slot 3 (anna)\n"), "\(output.text)")
        #expect(output.text.contains("\(paths[2]): no such slot\n"), "\(output.text)")
        #expect(try labels("a") == ["first"] && labels("b") == ["first"])
        let last = try run(
            ["key", "remove", paths[0], "--slot", "label:anna", "--slot", "1"] + stores.secret,
            exitCode: 10)
        #expect(last.stdout.isEmpty)
        _ = try run(["key", "remove", paths[0], "1"] + stores.secret, exitCode: 13)
        try makeStores(["d"])
        _ = try run(["key", "remove", stores.path("d"), "1", "2"] + stores.secret, exitCode: 13)
        #expect(try labels("d") == ["first", "anna"])
        // Its own slot goes last.
        let opened = try stores.open("d")
        try opened.keys.add(.keyFile([UInt8](repeating: 9, count: 32)), label: "x")
        try opened.close()
        _ = try run(["key", "remove", stores.path("d"), "1", "2"] + stores.secret)
        #expect(try labels("d") == ["x"])
    }

    @Test func `add gives several stores a slot, and backup copies their keyrings`() throws {
        try stores.make("a", "b")
        let paths = ["a", "b"].map(stores.path)
        let added = try run(
            ["key", "add"] + paths + stores.secret + [
                "--new-key-file", stores.path("leaver"), "--label", "anna", "--jobs", "2",
            ])
        #expect(added.text.contains("\(paths[0]): slot 2"), "\(added.text)")
        #expect(opens("a", Self.leaver) && opens("b", Self.leaver))
        let command = paths + stores.secret + ["--new-key-file", stores.path("leaver")]
        let again = try run(["key", "add"] + command)
        #expect(
            again.text.contains("\(paths[1]): slot 2 is for this credential already"),
            "\(again.text)")
        _ = try run(["key", "add", paths[0]] + command.dropFirst(2), exitCode: 22)
        let found = try run(
            ["key", "add", "--if-missing", "--label", "bert", paths[0]] + command.dropFirst(2))
        #expect(found.text.contains("slot 2 is for this credential already"), "\(found.text)")
        #expect(found.text.contains("anna") && !found.text.contains("bert"), "\(found.text)")
        #expect(found.errorText.contains("keeps its label"), "\(found.errorText)")
        // Both make a new secret each time.
        for option in [["--make-recovery-key"], ["--wrap-command", "cat"]] {
            _ = try run(
                ["key", "add", "--if-missing", paths[0]] + stores.secret + option, exitCode: 2)
        }
        // Each run would need it, and the first would get it.
        _ = try run(
            ["key", "add"] + paths + stores.secret + ["--new-passphrase-stdin"],
            input: Data("new".utf8), exitCode: 19)
        _ = try run(["key", "add"] + paths + stores.secret, exitCode: 19)
        _ = try run(
            ["key", "add"] + paths + stores.secret + ["--make-recovery-key"], exitCode: 2)
        #expect(try labels("a") == ["first", "anna"])

        let folder = stores.path("copies")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        _ = try run(["key", "backup"] + paths + stores.secret + ["--to", folder])
        for path in paths {
            let id = try Keyring(of: path).storeID
            let copy = folder + "/\(id).keyring"
            #expect(try Keyring(contentsOf: copy).storeID == id)
            #expect(
                try Data(contentsOf: URL(filePath: copy))
                    == Data(contentsOf: URL(filePath: path + ".keyring")))
        }
        let repeated = try run(
            ["key", "backup", paths[0], "--to", folder] + stores.secret, exitCode: 22)
        #expect(repeated.errorText.contains("exists already"))
        _ = try run(["key", "backup", paths[0]] + stores.secret, exitCode: 2)
    }

    @Test func `several stores with one key of their own get keyrings`() throws {
        let names = ["a", "b"]
        for name in names {
            try Store(
                path: stores.path(name), key: .passphrase("old"), configuration: .testing()
            ).close()
        }
        try stores.write("old\n", to: "old")
        let command =
            ["key", "enable"] + names.map(stores.path) + [
                "--passphrase-file", stores.path("old"), "--new-key-file", stores.path("file"),
                "--label", "ops",
            ]
        _ = try run(command, exitCode: 2)
        let output = try run(command + ["--no-recovery-key"])
        #expect(output.text.contains("done:    2\n"), "\(output.text)")
        for name in names {
            #expect(opens(name, RotatedStores.file))
            #expect(try labels(name) == ["ops"])
        }
    }
}
