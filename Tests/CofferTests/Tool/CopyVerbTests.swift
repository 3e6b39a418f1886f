import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct CopyVerbTests {
    private let folder: TemporaryFolder
    private let path: String
    private let copy: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        copy = folder.path("copy.db")
    }

    private func make(rowCount: Int = 30) throws {
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        try connection.transaction {
            for number in 0..<rowCount {
                try connection.execute("INSERT INTO note VALUES (\(number), randomblob(2000))")
            }
        }
        connection.close()
    }

    private func coffer(
        _ verb: String, _ options: String..., key: UInt8 = 1, under wrapper: [String] = []
    ) throws -> Tool.Output {
        try Tool.run(
            [verb, path, copy, "--raw-key-fd", "3"] + options,
            descriptors: [3: Tool.key(key), 4: Tool.key(2)], under: wrapper)
    }

    /// All rows of a store, which must be sound.
    private func rows(_ path: String, key: UInt8) throws -> [[Value]] {
        let store = try Store(path: path, key: .numbered(key), mode: .mustExist)
        let rows = try store.read { tx in
            try tx.rows("SELECT * FROM note ORDER BY id").map(\.values)
        }
        let report = try store.verify()
        #expect(report.isGood)
        try store.close()
        return rows
    }

    private func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
    }

    // MARK: Good

    @Test func `backup makes an equal store under the same key, or under another`() throws {
        try make()
        let same = try coffer("backup", "--json", "--progress", "json")
        #expect(same.exitCode == 0, "\(same.errorText)")
        #expect(same.text.contains("\"rowCount\":30"))
        #expect(same.errorText.contains("\"unit\":\"pages\""))
        #expect(try rows(copy, key: 1) == rows(path, key: 1))
        try FileManager.default.removeItem(atPath: copy)
        let other = try coffer("backup", "--new-raw-key-fd", "4")
        #expect(other.exitCode == 0, "\(other.errorText)")
        #expect(try rows(copy, key: 2) == rows(path, key: 1))
        expect(.wrongKey) { try rows(copy, key: 1) }
    }

    @Test func `decrypt and encrypt lead back to an equal store`() throws {
        try make()
        let decrypted = try coffer("decrypt", "--write-plaintext")
        #expect(decrypted.exitCode == 0, "\(decrypted.errorText)")
        #expect(decrypted.errorText.contains("not encrypted"))
        #expect(try StoreFileStatus(path: copy).format == .plaintext)
        let back = folder.path("back.db")
        let encrypted = try Tool.run(
            ["encrypt", copy, back, "--raw-key-fd", "3"], descriptors: [3: Tool.key(5)])
        #expect(encrypted.exitCode == 0, "\(encrypted.errorText)")
        #expect(try rows(back, key: 5) == rows(path, key: 1))
    }

    @Test func `upgrade turns a file of SQLCipher 1 into a current store`() throws {
        let raw = try RawConnection(
            path, key: 1,
            pragmas: [
                "PRAGMA cipher_page_size = 1024", "PRAGMA kdf_iter = 4000",
                "PRAGMA cipher_use_hmac = OFF",
            ]
                + (isEngine4
                    ? [
                        "PRAGMA cipher_hmac_algorithm = HMAC_SHA1",
                        "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1",
                    ] : []))
        #expect(raw.run("CREATE TABLE note(id INTEGER PRIMARY KEY, body)") == 0)
        #expect(raw.run("INSERT INTO note VALUES (1, 'old')") == 0)
        let status = try Tool.run(
            ["status", path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(status.exitCode == 16)
        #expect(status.errorText.contains("coffer upgrade"))
        let before = try Data(contentsOf: URL(filePath: path))
        let output = try coffer("upgrade", "--json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try rows(copy, key: 1) == [[1, "old"]])
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
    }

    @Test func `upgrade changes the profile and the key at once`() throws {
        try make()
        let output = try coffer(
            "upgrade", "--new-raw-key-fd", "4", "--profile", "sqlcipher3", "--json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.text.contains("\"profile\":\"sqlcipher3\""))
        #expect(try rows(copy, key: 2) == rows(path, key: 1))
    }

    // MARK: Bad

    @Test(arguments: ["backup", "decrypt", "upgrade", "encrypt"])
    func `a copy is never written over a file`(verb: String) throws {
        try make()
        try Data("mine".utf8).write(to: URL(filePath: copy))
        let flag = verb == "decrypt" ? ["--write-plaintext"] : []
        let output = try Tool.run(
            [verb, path, copy, "--raw-key-fd", "3"] + flag, descriptors: [3: Tool.key(1)])
        #expect(output.exitCode == 22)
        #expect(output.errorText.contains("exists already"))
        #expect(try Data(contentsOf: URL(filePath: copy)) == Data("mine".utf8))
    }

    @Test(arguments: ["backup", "decrypt", "upgrade"])
    func `a damaged store or a wrong key leaves no copy`(verb: String) throws {
        try make()
        let flag = verb == "decrypt" ? ["--write-plaintext"] : []
        func run(_ key: UInt8) throws -> Int32 {
            try Tool.run(
                [verb, path, copy, "--raw-key-fd", "3"] + flag, descriptors: [3: Tool.key(key)]
            ).exitCode
        }
        #expect(try run(9) == 12)
        try Damage.flip(path, at: 8 * 4096 + 100)
        #expect(try run(1) == 14)
        #expect(try files() == ["store.db"])
    }

    @Test func `a file that is not a plaintext database is not encrypted`() throws {
        try make()
        #expect(try coffer("encrypt").exitCode == 16)
        #expect(try files() == ["store.db"])
        try FileManager.default.removeItem(atPath: path)
        #expect(try coffer("encrypt").exitCode == 10)
    }

    @Test(arguments: [6000, 8192, 4096 * 3])
    func `a plaintext database that is cut short is not encrypted`(byteCount: Int) throws {
        // SQLite reads the missing part of the last page as zeros: a value became NULL once.
        let raw = try RawConnection(path)
        raw.run("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        raw.run("INSERT INTO note VALUES (1, randomblob(20000))")
        #expect(try Damage.byteCount(path) > byteCount)
        try Damage.truncate(path, to: byteCount)
        let output = try coffer("encrypt")
        #expect(output.exitCode == 14)
        #expect(output.errorText.contains("The end is missing"))
        #expect(try files() == ["store.db"])
    }

    @Test func `decrypt requires a second option as confirmation`() throws {
        try make()
        let output = try coffer("decrypt")
        #expect(output.exitCode == 2)
        #expect(output.errorText.contains("--write-plaintext"))
        #expect(try files() == ["store.db"])
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `an interrupted copy leaves nothing and exits with 130`(signal: Int32) throws {
        try make(rowCount: 12000)
        let tool = try Tool.start(
            ["upgrade", path, copy, "--raw-key-fd", "3", "--progress", "json"],
            descriptors: [3: Tool.key(1)])
        let deadline = ContinuousClock.now + .seconds(60)
        while !tool.errorText.contains("\"done\"") {
            try #require(ContinuousClock.now < deadline, "no progress was told")
            usleep(1000)
        }
        tool.send(signal)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(output.stdout.isEmpty)
        #expect(try files() == ["store.db"])
    }
}
