import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Files that do not open as a store, and what Coffer says of them.
@Suite(.againstHanging, .onOwnThreads) struct StrangeFileTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    /// Expects the same error from everything that opens the file to read it, and an unchanged
    /// file.
    private func expectAll(
        _ code: StoreError.Code, key: [UInt8] = [UInt8](repeating: 1, count: 32),
        pages: [Int] = [], saying word: String
    ) throws {
        let before = try Data(contentsOf: URL(filePath: path))
        let copy = folder.path("copy.db")
        for mode in [OpenMode.createIfMissing, .mustExist, .readOnly] {
            let errors = [
                expect(code) { _ = try Store(path: path, key: .raw(key), mode: mode) },
                expect(code) { _ = try Connection(path: path, key: .raw(key), mode: mode) },
                expect(code) { try Store.upgrade(from: path, key: .raw(key), to: copy) },
            ]
            for error in errors {
                #expect(error?.pages == pages)
                let said = error.map { "\($0)" } ?? ""
                #expect(said.contains(word), "\(said)")
            }
        }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 1)
    }

    private func coffer(_ arguments: String...) throws -> Tool.Output {
        try Tool.run(arguments, descriptors: [3: Tool.key(1)])
    }

    // MARK: A header in the clear

    /// The bytes that SQLCipher 4 leaves with `cipher_plaintext_header_size`, made without it.
    private func headerInClear(_ count: Int) -> [UInt8] {
        let start =
            Array("SQLite format 3\0".utf8) + [16, 0, 1, 1, 80, 64, 32, 32]
            + [UInt8](repeating: 0, count: 72) + [0x00, 0x2e, 0x7e, 0xbd]
        var bytes = (0..<12_288).map { _ in UInt8.random(in: 0...0xff) }
        bytes.replaceSubrange(..<count, with: start.prefix(count))
        // This byte is random where so little is in the clear. In one of 256 files it gives no
        // sign.
        bytes[20] = 80
        return bytes
    }

    private func expectPlaintextHeader() throws {
        try expectAll(.unsupported, saying: "cipher_plaintext_header_size")
        let error = expect(.unsupported) {
            try Store.encrypt(plaintextAt: path, to: folder.path("copy.db"), key: .numbered(2))
        }
        #expect(error?.hint?.contains("sqlcipher_export") == true)
        #expect(try StoreFileStatus(path: path).format == .plaintextHeader)
    }

    @Test(arguments: [16, 32, 64, 96])
    func `a file with a plaintext header is recognised`(count: Int) throws {
        for _ in 0..<20 {
            try write(headerInClear(count))
            try expectPlaintextHeader()
        }
    }

    @Test(arguments: [16, 32, 64, 96])
    func `ciphertext that looks like the start of a page does not hide a plaintext header`(
        count: Int
    ) throws {
        var bytes = headerInClear(count)
        // A leaf without a freeblock, with a cell that begins where the content does not.
        bytes.replaceSubrange(100..<110, with: [13, 0, 0, 0, 1, 0x0f, 0xf0, 0, 0x0f, 0x00])
        if count == 16 {
            // A page size and a cell that fit, and a fraction that does not.
            bytes.replaceSubrange(16..<24, with: [16, 0, 1, 1, 80, 65, 32, 32])
            bytes[109] = 0xf0
        }
        try write(bytes)
        try expectPlaintextHeader()
    }

    @Test func `a file with a plaintext header that the engine made is recognised too`() throws {
        // Only SQLCipher 4 has the setting.
        guard isEngine4 else { return }
        for count in [16, 32, 64] {
            removeStore(path)
            do {
                let raw = try RawConnection(
                    path, key: 1, pragmas: ["PRAGMA cipher_plaintext_header_size = \(count)"])
                #expect(raw.run("CREATE TABLE t(v); INSERT INTO t VALUES (1)") == SQLITE_OK)
            }
            let header = try Data(contentsOf: URL(filePath: path)).prefix(24)
            try #require(header.starts(with: Data("SQLite format 3\0".utf8)))
            // See `headerInClear`.
            if count == 16, header[20] == 0 { continue }
            try expectPlaintextHeader()
        }
    }

    @Test func `every verb of the tool that judges files reports it`() throws {
        try write(headerInClear(32))
        let status = try coffer("status", path)
        #expect(status.exitCode == 0 && status.text.contains("plaintext header"))
        #expect(try coffer("status", path, "--raw-key-fd", "3").exitCode == 16)
        let encrypt = try coffer("encrypt", path, folder.path("copy.db"), "--raw-key-fd", "3")
        #expect(encrypt.exitCode == 16)
        #expect(encrypt.errorText.contains("cipher_plaintext_header_size"), "\(encrypt.errorText)")
        let doctor = try coffer("doctor", path)
        #expect(doctor.exitCode == 0 && doctor.text.contains("cipher_plaintext_header_size"))
    }

    @Test func `a plaintext database with reserved bytes is a plaintext database`() throws {
        do {
            let raw = try RawConnection(path)
            raw.run("CREATE TABLE t(v)")
        }
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        for reserved: UInt8 in [0, 8, 80] {
            bytes[20] = reserved
            try write(bytes)
            #expect(try StoreFileStatus(path: path).format == .plaintext)
            expect(.notEncrypted) { _ = try Connection(path: path, key: .numbered(1)) }
        }
    }

    // MARK: Other settings

    @Test
    func `a file with a different number of rounds is .wrongKey, and the hint names the reason`()
        throws
    {
        do {
            let raw = try RawConnection(path)
            #expect(raw.setKey("open sesame") == SQLITE_OK)
            let settings = [
                "cipher_page_size = 1024", "kdf_iter = 5000",
                "cipher_hmac_algorithm = HMAC_SHA1", "cipher_kdf_algorithm = PBKDF2_HMAC_SHA1",
            ]
            for setting in settings { raw.run("PRAGMA \(setting)") }
            #expect(raw.run("CREATE TABLE t(v)") == SQLITE_OK)
        }
        let error = expect(.wrongKey) {
            _ = try Connection(
                path: path, key: .passphrase("open sesame"), mode: .mustExist,
                configuration: .testing(profile: .sqlcipher3))
        }
        #expect(error?.hint?.contains("kdf_iter") == true)
    }

    @Test func `a file with another HMAC is .wrongKey, and the hint names the reason`() throws {
        // SQLCipher 3 has only one.
        guard isEngine4 else { return }
        do {
            let raw = try RawConnection(
                path, key: 1, pragmas: ["PRAGMA cipher_hmac_algorithm = HMAC_SHA256"])
            #expect(raw.run("CREATE TABLE t(v)") == SQLITE_OK)
        }
        let error = expect(.wrongKey) {
            _ = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        }
        #expect(error?.hint?.contains("HMAC") == true)
    }

    // MARK: Nothing at the beginning

    @Test(arguments: [UInt8(0), 0xff], supportedProfiles)
    func `a first page of zeros or ones is damage`(byte: UInt8, profile: CipherProfile) throws {
        let key = [UInt8](repeating: 5, count: 48)
        let connection = try Connection(
            path: path, key: .raw(key), configuration: .testing(profile: profile))
        try connection.execute("CREATE TABLE t(v)")
        connection.close()
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let blank = [UInt8](repeating: byte, count: profile.pageByteCount)
        bytes.replaceSubrange(..<blank.count, with: blank)
        try write(bytes)
        #expect(try StoreFileStatus(path: path).format == .blank)
        // The key brings the lost salt, and so proves itself right.
        try expectAll(.damaged, key: key, pages: [1], saying: "the key is right")
        try expectAll(.damaged, pages: [1], saying: byte == 0 ? "zeros" : "ones")
        #expect(try coffer("status", path).text.contains("blank"))
        #expect(try coffer("verify", path, "--raw-key-fd", "3").exitCode == 14)
    }

    @Test(arguments: [UInt8(0), 0xff])
    func `a whole file of zeros or ones is damage, a shorter one is not a store`(
        byte: UInt8
    ) throws {
        for count in [512, 4096, 40_000] {
            try write([UInt8](repeating: byte, count: count))
            try expectAll(.damaged, pages: [1], saying: "contains only")
        }
        try write([UInt8](repeating: byte, count: 511))
        try expectAll(.notAStore, saying: "511 bytes")
        try write([])
        try expectAll(.truncated, saying: "empty")
    }

    @Test func `noise of no whole number of pages is cut off or is not a store`() throws {
        for count in [513, 700, 1023] {
            try write((0..<count).map { _ in UInt8.random(in: 0...0xff) })
            try expectAll(.truncated, saying: "\(count) bytes")
        }
        // It may be a sound store of smaller pages under another key, with bytes after its end.
        for count in [1025, 4095] {
            try write((0..<count).map { _ in UInt8.random(in: 0...0xff) })
            try expectAll(.wrongKey, saying: "\(count) bytes")
        }
        try write((0..<512).map { _ in UInt8.random(in: 0...0xff) })
        try expectAll(.wrongKey, saying: "does not open")
    }

    @Test func `the start of a store beside its log is .wrongKey for a wrong key`() throws {
        let original = folder.path("original.db")
        let connection = try Connection(
            path: original, key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE t(v)")
        let log = try Data(contentsOf: URL(filePath: original + "-wal"))
        connection.close()
        try #require(log.count > 4096)
        for count in [513, 700, 1023] {
            try write((0..<count).map { _ in UInt8.random(in: 0...0xff) })
            try log.write(to: URL(filePath: path + "-wal"))
            expect(.wrongKey) {
                _ = try Connection(path: path, key: .numbered(2), mode: .readOnly)
            }
            let right = try Connection(path: path, key: .numbered(1), mode: .readOnly)
            #expect(try right.rows("SELECT * FROM t").isEmpty)
            right.close()
        }
    }

    // MARK: Nothing at all

    @Test(arguments: journalModes)
    func `a store whose file was removed during a pause stays suspended with .notFound`(
        mode: Configuration.JournalMode
    ) throws {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        try store.suspend()
        let elsewhere = folder.path("elsewhere.db")
        try FileManager.default.moveItem(atPath: path, toPath: elsewhere)
        let error = expect(.notFound) { try store.resume() }
        #expect(error?.message.contains(store.path) == true)
        expect(.suspended) { try store.read { _ in } }
        try FileManager.default.moveItem(atPath: elsewhere, toPath: path)
        try store.resume()
        #expect(try store.read { try $0.rows("SELECT * FROM t").count } == 0)
    }
}
