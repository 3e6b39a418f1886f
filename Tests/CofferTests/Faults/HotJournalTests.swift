// SQLCipher 3.4.1 crashes when a connection plays back a hot journal of another page size: measured
// with 4096 against 1024, 6 of 6. Opening tries several profiles, so a wrong key on a `.sqlcipher3`
// file whose writer was killed crashed the whole process. Now only profiles of the journal's page
// size are tried; the journal has its page size in the clear.

import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct HotJournalTests {
    @Test(arguments: supportedProfiles)
    func `a wrong key next to a hot journal is .wrongKey and the right one rolls it back`(
        profile: CipherProfile
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: profile))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<1500 {
                try connection.execute(
                    "INSERT INTO t(v) VALUES (\([UInt8](repeating: 5, count: 3000)))")
            }
        }
        connection.close()
        let peer = try Peer(["spill", path, "1"])
        try #require(peer.line() == "ready")
        peer.kill()
        let location = try FileLocation(path)
        #expect(location.pendingPageByteCount() == profile.pageByteCount)

        expect(.wrongKey) { try Connection(path: path, key: .numbered(2), mode: .mustExist) }
        let again = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        let sum = try again.firstRow(
            "SELECT count(*) FROM t WHERE v = \(Data(repeating: 5, count: 3000))")
        #expect(sum?[0] == 1500)
        #expect(again.profile == profile)
    }

    @Test(arguments: supportedProfiles)
    func `a journal that has the first page brings back its salt, and the key opens the store`(
        profile: CipherProfile
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .passphrase("one"), configuration: .testing(.delete, profile: profile))
        try connection.execute("CREATE TABLE t(v)")
        try connection.execute("INSERT INTO t VALUES (7)")
        connection.close()
        let size = profile.pageByteCount
        let first = try Data(contentsOf: URL(filePath: path)).prefix(size)
        // A record of page 1, in a header as SQLite writes it, with a nonce of 0.
        let pageCount = try Damage.byteCount(path) / size
        let numbers = [1, 0, pageCount, 512, size].flatMap(Self.bytes)
        var journal: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + numbers
        journal += [UInt8](repeating: 0, count: 512 - journal.count) + Self.bytes(1) + first
        // "starting at byte offset X-200 … every 200th byte": pager_cksum in pager.c
        let sum = stride(from: size - 200, to: 0, by: -200).reduce(0) {
            $0 + Int(first[$1])
        }
        try Data(journal + Self.bytes(sum)).write(to: URL(filePath: path + "-journal"))
        try Damage.zero(path, at: 0, count: size)
        let again = try Connection(
            path: path, key: .passphrase("one"), mode: .mustExist,
            configuration: .testing(.existing))
        #expect(try again.firstRow("SELECT v FROM t")?[0] == 7)
        #expect(try FileLocation(path).hasPendingChanges == false)
    }

    private static func bytes(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(number).bigEndian) { Array($0) }
    }

    @Test(arguments: [512, 1024, 8192, 65536])
    func `a journal of another page size next to a good store is .damaged and not touched`(
        pageByteCount: Int
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.path()
        try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete, profile: .portable)
        ).close()
        // One record of page 1, in a header as SQLite writes it.
        let numbers = [1, 0, 1, 512, pageByteCount].flatMap(Self.bytes)
        var journal: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7] + numbers
        journal += [UInt8](repeating: 0, count: 512 - journal.count) + [0, 0, 0, 1]
        journal += [UInt8](repeating: 7, count: pageByteCount + 4)
        try Data(journal).write(to: URL(filePath: path + "-journal"))
        let before = try Data(contentsOf: URL(filePath: path))
        let error = expect(.damaged) {
            try Connection(path: path, key: .numbered(1), mode: .mustExist)
        }
        #expect(error?.message.contains("journal") == true)
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        #expect(try Data(contentsOf: URL(filePath: path + "-journal")) == Data(journal))
    }

    @Test func `a journal whose header was cut short by a power loss does not keep a store closed`()
        throws
    {
        let folder = try TemporaryFolder()
        let path = folder.path()
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(.delete))
        try connection.execute("CREATE TABLE t(v)")
        connection.close()
        // The magic and the number of records are written after the rest.
        let start = Data([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0, 0, 1])
        let journal = start + Data(repeating: 0, count: 500)
        try journal.write(to: URL(filePath: path + "-journal"))
        let again = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.delete))
        let rows = try again.rows("SELECT * FROM t")
        #expect(rows.isEmpty)
    }
}
