import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct PageSizeTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private static let sizes = [1024, 2048, 4096, 8192, 16384, 32768, 65536]
    private static let sizedProfiles = supportedProfiles.flatMap { profile in
        sizes.compactMap(profile.resized)
    }

    private func make(
        _ profile: CipherProfile, _ mode: Configuration.JournalMode = .delete
    ) throws -> Store {
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(mode, profile: profile))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for _ in 0..<150 {
                try tx.execute("INSERT INTO t(v) VALUES (\([UInt8](repeating: 7, count: 900)))")
            }
        }
        return store
    }

    @Test(arguments: sizedProfiles, journalModes)
    func `a store of every page size is made, found without naming it, verified and rekeyed`(
        profile: CipherProfile, mode: Configuration.JournalMode
    ) throws {
        let store = try make(profile, mode)
        #expect(store.profile == profile)
        let fresh = try store.verify()
        #expect(fresh.isGood && (fresh.frameCount > 0) == (mode == .wal), "\(fresh)")
        try store.close()
        #expect(try Damage.byteCount(path) % profile.pageByteCount == 0)
        let again = try Store(path: path, key: .numbered(1), configuration: .testing(mode))
        #expect(again.profile.pageByteCount == profile.pageByteCount)
        #expect(again.profile.hash == profile.hash)
        try again.rekey(to: .numbered(2))
        let report = try again.verify()
        #expect(report.isGood && report.pageCount > 2)
        try again.close()
        let named = try Store(
            path: path, key: .numbered(2), configuration: .testing(mode, profile: profile))
        #expect(try named.read { tx in try tx.rows("SELECT v FROM t").count } == 150)
    }

    @Test(arguments: sizedProfiles)
    func `the engine alone opens a file with another page size, and the header names the size`(
        profile: CipherProfile
    ) throws {
        try make(profile).close()
        var pragmas = ["PRAGMA cipher_page_size = \(profile.pageByteCount)"]
        if profile.hash == .sha1 {
            pragmas += [
                "PRAGMA cipher_hmac_algorithm = HMAC_SHA1",
                "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1",
            ]
        }
        let raw = try RawConnection(path, key: 1, pragmas: pragmas)
        #expect(raw.first("SELECT count(*) FROM t") == "150")
        #expect(raw.first("PRAGMA page_size") == "\(profile.pageByteCount)")
        let connection = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        let open = try connection.fileState()
        let page = try #require(try open.handle.rawPage(1, byteCount: profile.pageByteCount))
        let first = page.withUnsafeBytes {
            FirstPage(decrypting: $0, key: open.key, profile: open.profile)
        }
        #expect(first?.pageByteCount == profile.pageByteCount)
        // SQLCipher 4 keeps the reserve of its default SHA-512, whatever is set later.
        #expect(first?.reserveByteCount == (isEngine4 ? 80 : 48))
    }

    @Test func `a passphrase is derived no more often for another page size`() throws {
        let profile = try CipherProfile.sqlcipher3.with(pageByteCount: 8192)
        try Connection(
            path: path, key: .passphrase("open sesame"), configuration: .testing(profile: profile)
        ).close()
        let connection = try Connection(
            path: path, key: .passphrase("open sesame"), mode: .mustExist)
        #expect(connection.profile == profile)
        expect(.wrongKey) {
            _ = try Connection(path: path, key: .passphrase("wrong"), mode: .mustExist)
        }
    }

    @Test func `naming another page size than the file's is misuse that names the file's size`()
        throws
    {
        let profile = try CipherProfile.portable.with(pageByteCount: 8192)
        try make(profile).close()
        let error = expect(.misuse) {
            _ = try Connection(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: .testing(.delete, profile: .portable))
        }
        #expect(error?.message.contains("8192") == true)
        expect(.wrongKey) {
            _ = try Connection(
                path: path, key: .numbered(2), mode: .mustExist,
                configuration: .testing(.delete, profile: .portable))
        }
    }

    @Test(arguments: sizedProfiles)
    func `truncation and a damaged first page are recognised for every page size`(
        profile: CipherProfile
    ) throws {
        try make(profile).close()
        let copy = try folder.copy(path, as: "copy.db")
        try Damage.flip(copy, at: 500)
        let error = expect(.damaged) {
            _ = try Connection(path: copy, key: .numbered(1), mode: .mustExist)
        }
        #expect(error?.pages == [1])
        try Damage.truncate(path, to: try Damage.byteCount(path) - profile.pageByteCount)
        expect(.truncated) {
            _ = try Connection(path: path, key: .numbered(1), mode: .mustExist)
        }
    }

    @Test(arguments: [1024, 8192, 65536])
    func `a wrong key next to a hot journal of another page size is .wrongKey`(size: Int) throws {
        let profile = try CipherProfile.portable.with(pageByteCount: size)
        let store = try make(profile)
        try store.write { tx in
            for _ in 0..<1500 {
                try tx.execute("INSERT INTO t(v) VALUES (zeroblob(3000))")
            }
        }
        try store.close()
        let peer = try Peer(["spill", path, "1"])
        try #require(peer.line() == "ready")
        peer.kill()
        expect(.wrongKey) { try Connection(path: path, key: .numbered(2), mode: .mustExist) }
        let again = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        #expect(try again.firstRow("SELECT count(*) FROM t")?[0] == 1650)
    }
}
