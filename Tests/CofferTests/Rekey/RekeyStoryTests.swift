// Why Coffer exists.
//
// A program changes its database's key: `sqlite3_rekey` returns SQLITE_OK. But another process was
// just writing, so the engine could not take the lock, changed nothing, and reported nothing. The
// connection, though, believes in the new key. The program goes on and inserts a row. That row's
// pages are written under the new key, in a file whose other pages are under the old one. From now
// on neither key opens the file, and no tool brings the rows back. Both engines do this, in every
// version, and every wrapper that trusts the result code inherits it.

import CSQLCipher
import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct RekeyStoryTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: .portable))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for number in 0..<2000 {
                try connection.execute("INSERT INTO t(v) VALUES (\("row number \(number)"))")
            }
        }
        connection.close()
    }

    /// A peer that holds the write lock until the test lets it go on.
    private func busyPeer() throws -> Peer {
        let peer = try Peer(["hold-write", "delete", path, "1"])
        try #require(peer.line() == "ready")
        return peer
    }

    @Test
    func
        `raw sqlite3_rekey reports success next to a busy peer and the next insert destroys the file`()
        throws
    {
        let peer = try busyPeer()
        do {
            var settings = ["PRAGMA cipher_page_size = 4096", "PRAGMA kdf_iter = 256000"]
            if try Engine.capabilities.cipherMajorVersion >= 4 {
                settings += [
                    "PRAGMA cipher_hmac_algorithm = HMAC_SHA1",
                    "PRAGMA cipher_kdf_algorithm = PBKDF2_HMAC_SHA1",
                    "PRAGMA cipher_log_level = NONE",
                ]
            }
            let raw = try RawConnection(path, key: 1, pragmas: settings)
            #expect(raw.first("SELECT count(*) FROM t") == "2000")
            #expect(raw.rekey(2) == SQLITE_OK, "the lie")
            peer.goOn()
            #expect(peer.finish() == ["released"])
            #expect(
                raw.run("INSERT INTO t(v) VALUES ('the row that destroys the file')") == SQLITE_OK)
        }
        for key: UInt8 in [1, 2] {
            #expect(throws: StoreError.self, "key \(key) must not read every row") {
                let connection = try Connection(
                    path: path, key: .numbered(key), mode: .mustExist,
                    configuration: .testing(.delete, profile: .portable))
                let count = try connection.rows("SELECT v FROM t").count
                if count < 2000 { throw StoreError(.damaged, "rows are gone") }
            }
        }
    }

    @Test func `Coffer reports .busy next to the same peer and no row is lost`() throws {
        let peer = try busyPeer()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .impatient(.delete))
        expect(.busy) { try connection.rekey(to: .numbered(2)) }
        peer.goOn()
        #expect(peer.finish() == ["released"])

        try connection.execute("INSERT INTO t(v) VALUES ('one more row')")
        connection.close()
        let again = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        #expect(try again.rows("SELECT v FROM t").count == 2001)
        expect(.wrongKey) {
            _ = try Connection(
                path: path, key: .numbered(2), mode: .mustExist, configuration: .testing(.delete))
        }
    }
}
