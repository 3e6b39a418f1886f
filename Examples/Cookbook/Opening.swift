import Coffer
import Foundation

/// Keys, and files of other programs.
enum Opening {
    static let recipes = [passphrase, keyFile, wrongKey, changeKey, encrypt, readOnly]

    static let passphrase = Recipe("passphrase", "open a store with a passphrase") { kitchen in
        let path = kitchen.path("notes.db")
        let store = try await Store(path: path, key: .passphrase("correct horse battery staple"))
        try await store.write { tx in try tx.execute("CREATE TABLE note(text TEXT)") }
        try await store.close()
        let again = try await Store(path: path, key: .passphrase("correct horse battery staple"))
        try kitchen.check(
            "the table is there", try await again.read { try $0.rows("SELECT * FROM note").isEmpty }
        )
    }

    static let keyFile = Recipe("key-file", "keep a random key in a file of its own") { kitchen in
        let (path, keyPath) = (kitchen.path("notes.db"), kitchen.folder.appending(path: "key"))
        let key = StoreKey.random()
        try key.withBytes { bytes in
            try Data(bytes).write(to: keyPath, options: .withoutOverwriting)
        }
        try await Store(path: path, key: key).close()
        let store = try await Store(path: path, key: .raw(try Data(contentsOf: keyPath)))
        try kitchen.check("it opens", try await store.verify().isGood)
    }

    static let wrongKey = Recipe("wrong-key", "tell a wrong key from a damaged file") { kitchen in
        let path = kitchen.path("notes.db")
        try await Store(path: path, key: .passphrase("old")).close()
        var mustAskAgain = false
        do {
            _ = try await Store(path: path, key: .passphrase("new"))
        } catch let error as StoreError where error.code == .wrongKey {
            mustAskAgain = true  // a damaged file is `.damaged`: restore a backup
        }
        try kitchen.check("the user is asked again", mustAskAgain)
    }

    static let changeKey = Recipe("change-key", "change the passphrase") { kitchen in
        let path = kitchen.path("notes.db")
        let store = try await Store(path: path, key: .passphrase("old"))
        let report = try await store.rekey(to: .passphrase("new"))
        try kitchen.check("every page was proven", report.pageCount > 0)
        try await store.close()
        try await kitchen.check(.wrongKey) {
            _ = try await Store(path: path, key: .passphrase("old"))
        }
    }

    static let encrypt = Recipe("encrypt", "encrypt a plaintext SQLite file") { kitchen in
        let plain = kitchen.path("plain.db")
        let maker = try await kitchen.store("maker.db")
        try await maker.write { tx in
            try tx.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES (7)")
        }
        try await maker.decrypt(to: plain)
        let key = StoreKey.random()
        let report = try await Store.encrypt(
            plaintextAt: plain, to: kitchen.path("notes.db"), key: key)
        try kitchen.check("the row came along", report.rowCount == 1)
        // The plaintext is still there: delete it when the new store is in use.
        try FileManager.default.removeItem(atPath: plain)
    }

    static let readOnly = Recipe("read-only", "look into a store without changing it") { kitchen in
        let path = kitchen.path("notes.db")
        let key = StoreKey.random()
        try await Store(path: path, key: key).close()
        let store = try await Store(path: path, key: key, mode: .readOnly)
        try await kitchen.check(.readOnly) {
            try await store.write { tx in try tx.execute("CREATE TABLE t(a)") }
        }
    }
}
