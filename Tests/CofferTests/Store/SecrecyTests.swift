import Foundation
import Testing

@testable import Coffer

/// What the store keeps secret, as seen from outside.
@Suite(.againstHanging, .onOwnThreads) struct SecrecyTests {
    private static let marker = "MARKER-7f3a-plaintext"

    @Test(arguments: journalModes)
    func `no plaintext is in any file while the store works`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        var configuration = Configuration.testing(mode)
        configuration.maximumCacheByteCount = 1  // the smallest possible: pages spill
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        let bucket = Bucket<Int, String>(Self.marker)
        try store.write { tx in
            for key in 0..<3000 { try tx.set("\(Self.marker) \(key)", for: key, in: bucket) }
            try expectNoMarker(folder)
            try tx.execute("CREATE INDEX i ON \(identifier: "bucket:" + Self.marker)(value)")
            _ = try tx.rows(
                "SELECT value FROM \(identifier: "bucket:" + Self.marker) ORDER BY value || key"
            )
            try expectNoMarker(folder)
        }
        try expectNoMarker(folder)
        try store.rekey(to: .numbered(2))
        try expectNoMarker(folder)
        try store.close()
        try expectNoMarker(folder)
    }

    /// What `PRAGMA temp_store = FILE` would write to a folder for temporary files is plaintext, on
    /// both engines, in files that lose their names as soon as they are open.
    @Test(arguments: journalModes)
    func `sorts and temporary tables that outgrow the cache open no file`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        let told = try Peer.run(["temporary-files", mode.description, folder.path(), "1"])
        #expect(told == ["files "])
    }

    /// Reads the files in another process, because the descriptor rule forbids it here.
    private func expectNoMarker(_ folder: TemporaryFolder) throws {
        let grep = Process()
        grep.executableURL = URL(filePath: "/usr/bin/env")
        grep.arguments = ["grep", "-r", "-l", "-a", Self.marker, folder.url.path]
        grep.standardOutput = FileHandle.nullDevice
        try grep.run()
        grep.waitUntilExit()
        #expect(grep.terminationStatus == 1, "1 means that grep read the files and found nothing")
    }

    @Test func `no key and no bound value appears in an error`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        try Connection(path: path, key: .numbered(1)).close()
        var texts: [String] = []
        for attempt in ["hunter2-secret", "x'hunter2-secret'"] {
            let error = expect(.wrongKey) {
                try Connection(
                    path: path, key: .passphrase(attempt),
                    configuration: .testing(profile: .sqlcipher3))
            }
            texts.append("\(try #require(error))")
        }
        let connection = try Connection(path: path, key: .numbered(1))
        for sql: SQL in ["SELECT * FROM \(identifier: "nowhere") WHERE x = \("hunter2-secret")"] {
            texts.append("\(try #require(expect(.sql) { try connection.execute(sql) }))")
        }
        for text in texts { #expect(!text.contains("hunter2")) }
    }

    @Test func `no key appears in the SQL that the engine runs`() throws {
        let folder = try TemporaryFolder()
        let secrets = ["canary-one-7f3a", "canary-two-9b2c"]
        let peer = try Peer(["trace", folder.path()])
        for secret in secrets { peer.send(secret) }
        let lines = peer.finish()
        #expect(lines.last == "done")
        #expect(lines.contains { $0.contains("CREATE TABLE traced") }, "nothing was traced")
        let salt = Array(try Data(contentsOf: URL(filePath: folder.path())).prefix(16))
        let forms = try secrets.flatMap { secret in
            let key = try KeyDerivation.rawKey(
                from: .passphrase(secret), salt: salt, profile: .sqlcipher3)
            let hex = key.withKeyText { String(decoding: $0[2..<66], as: UTF8.self) }
            return [secret, hex]
        }
        for line in lines {
            for form in forms { #expect(!line.lowercased().contains(form)) }
        }
    }

    // Not under the thread sanitizer: the search would read its terabytes of memory.
    #if os(Linux) && !COFFER_TSAN
    @Test func `no secret of a keyring is in the memory of a process that has closed its store`()
        throws
    {
        let folder = try TemporaryFolder()
        let lines = try Peer.run(["memory-of-keyring", folder.path()])
        try #require(lines.count == 2, "\(lines)")
        // While it is open, the root key and the key of the file are there: the search finds them.
        #expect(lines[0].contains(/open root [1-9]\d*, key [1-9]/), "\(lines[0])")
        #expect(lines[1] == "closed root 0, key 0, digits 0, derived 0, letters 0")
    }
    #endif

    @Test func `no key appears in the log`() throws {
        let folder = try TemporaryFolder()
        let log = LogRecorder()
        var configuration = Configuration.testing(profile: .sqlcipher3)
        configuration.logger = log.logger
        let store = try Store(
            path: folder.path(), key: .passphrase("canary-log"), configuration: configuration)
        try store.rekey(to: .passphrase("canary-next"))
        expect(.alreadyOpen) {
            try Store(
                path: folder.path(), key: .passphrase("canary-log"), configuration: configuration)
        }
        try store.close()
        #expect(log.events.count == 4, "what each event says: StoreEventsTests")
        for entry in log.entries { #expect(!"\(entry)".contains("canary")) }
    }
}
