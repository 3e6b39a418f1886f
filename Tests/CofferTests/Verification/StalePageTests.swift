import Foundation
import Testing

@testable import Coffer

/// Sound stores whose main file holds stale pages: their newest content is a committed frame of the
/// WAL, and no checkpoint has moved it.
@Suite(.againstHanging, .onOwnThreads) struct StalePageTests {
    private let folder: TemporaryFolder
    private let path: String
    private let pageByteCount: Int

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        pageByteCount = try Engine.capabilities.defaultProfile.pageByteCount
    }

    private static let wholeKey =
        [UInt8](repeating: 3, count: 32) + [UInt8](repeating: 4, count: 16)

    /// Waits only briefly for readers before it leaves the WAL as it is.
    private var impatient: Configuration { .impatient() }

    private func fill(_ connection: Connection, rowCount: Int = 100) throws {
        try connection.transaction {
            try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
            for _ in 0..<rowCount {
                try connection.execute("INSERT INTO t(v) VALUES (randomblob(900))")
            }
        }
    }

    /// Makes a closed store.
    private func make(key: [UInt8] = [UInt8](repeating: 1, count: 32)) throws {
        let connection = try Connection(path: path, key: .raw(key), configuration: .testing())
        try fill(connection)
        connection.close()
    }

    private func pageCount(_ path: String? = nil) throws -> Int {
        try Damage.byteCount(path ?? self.path) / pageByteCount
    }

    private func verify(_ options: String..., key: UInt8) throws -> Tool.Output {
        try Tool.run(
            ["verify", path, "--raw-key-fd", "3"] + options, descriptors: [3: Tool.key(key)])
    }

    /// Copies an open store and its WAL, as a crash leaves them.
    private func crash(as copy: String) throws -> String {
        for suffix in ["", "-wal"] {
            let copied = try Tool.runProgram(["cp", path + suffix, folder.path(copy + suffix)])
            try #require(copied.exitCode == 0)
        }
        return folder.path(copy)
    }

    /// Verifies the store, reads all rows, lets the last connection to close checkpoint the WAL,
    /// and verifies again.
    private func expectSound(_ path: String, key: [UInt8], rowCount: Int = 100) throws {
        for mode in [OpenMode.readOnly, .mustExist] {
            let store = try Store(path: path, key: .raw(key), mode: mode, configuration: impatient)
            let report = try store.verify()
            #expect(report.isGood && report.isCheckpointOwed, "\(mode): \(report)")
            #expect(try store.read { try $0.rows("SELECT v FROM t").count } == rowCount)
            try store.close()
        }
        let store = try Store(path: path, key: .raw(key), configuration: impatient)
        let report = try store.verify()
        #expect(report.isGood && !report.isCheckpointOwed, "\(report)")
        #expect(report.pageCount == report.pageCountTotal && report.trailingByteCount == 0)
        try store.close()
    }

    // MARK: A rekey before its checkpoint

    @Test func `a store that was rekeyed next to a reader is sound, and owes a checkpoint`() throws
    {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let store = try Store(path: path, key: .numbered(1), configuration: impatient)
        try store.rekey(to: .numbered(2))
        let pageCount = try pageCount()
        for scope in [VerificationScope.everything, .sample(maximumPageCount: 5)] {
            let report = try store.verify(scope)
            #expect(report.isGood, "\(report)")
            #expect(report.stalePageCount == pageCount && report.isCheckpointOwed)
            #expect(report.frameCount == pageCount)
        }
        try Connection(path: path, key: .numbered(2), configuration: impatient).check()
        // The tool opens a store that has a WAL for reading only.
        let said = try verify(key: 2)
        #expect(said.exitCode == 0 && said.text.contains("all good"), "\(said.text)")
        #expect(said.text.contains("owed: \(pageCount) pages"), "\(said.text)")
        let sample = try verify("--sample", "3", "--json", key: 2)
        let json = try JSONSerialization.jsonObject(with: sample.stdout) as? [String: Any]
        #expect(sample.exitCode == 0 && json?["isCheckpointOwed"] as? Bool == true)
        #expect(json?["stalePageCount"] as? Int == pageCount)
        peer.goOn()
        #expect(peer.finish() == ["released"])
        try store.close()
        let again = try Store(path: path, key: .numbered(2), configuration: impatient)
        let report = try again.verify()
        #expect(report.isGood && !report.isCheckpointOwed, "\(report)")
    }

    @Test(arguments: [1, 3])
    func `frames under an earlier key that newer ones supersede are not damage`(
        rekeyCount: Int
    ) throws {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let store = try Store(path: path, key: .numbered(1), configuration: impatient)
        try store.write { try $0.execute("UPDATE t SET v = randomblob(900) WHERE id <= 50") }
        for number in 0..<rekeyCount { try store.rekey(to: .numbered(UInt8(2 + number))) }
        let report = try store.verify()
        #expect(report.isGood, "\(report)")
        #expect(report.frameCount > rekeyCount * report.pageCount)
        let said = try verify(key: UInt8(1 + rekeyCount))
        #expect(said.exitCode == 0 && said.text.contains("all good"), "\(said.text)")
        // Nobody reads this frame, but it breaks the chain of checksums.
        try Damage.overwriteFromOutside(path + "-wal", at: 32 + 24 + 100)
        #expect(try !store.verify().isGood)
        peer.goOn()
        #expect(peer.finish() == ["released"])
    }

    @Test func `frames of pages that the database no longer has are not damage`() throws {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: impatient)
        for sql: SQL in [
            "UPDATE t SET v = randomblob(900)", "DELETE FROM t WHERE id > 50", "VACUUM",
        ] {
            try connection.execute(sql)
        }
        connection.close()
        let store = try Store(path: path, key: .numbered(1), configuration: impatient)
        try store.rekey(to: .numbered(2))
        let report = try store.verify()
        #expect(report.isGood, "\(report)")
        peer.goOn()
        #expect(peer.finish() == ["released"])
    }

    @Test func `a store cut at a page's end is damaged, though its WAL has committed frames`()
        throws
    {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let store = try Store(path: path, key: .numbered(1), configuration: impatient)
        try store.write { try $0.execute("UPDATE t SET v = 1 WHERE id = 1") }
        let byteCount = try Damage.byteCount(path)
        let cut = try Tool.runProgram(["truncate", "-s", "\(byteCount - 2 * pageByteCount)", path])
        try #require(cut.exitCode == 0)
        for scope in [VerificationScope.everything, .sample(maximumPageCount: 5)] {
            #expect(try !store.verify(scope).isGood)
        }
        peer.goOn()
        _ = peer.finish()
    }

    @Test func `a store whose rekey was killed between commit and checkpoint is sound`() throws {
        try make()
        let reader = try Peer(["hold-read", "wal", path, "1"])
        try #require(reader.line() == "ready")
        let rekey = try Peer(["rekey", "wal", path, "1", "2"])
        try #require(rekey.line() == "ready")
        rekey.goOn()
        try #require(rekey.line() == "rekeyed")
        rekey.kill()
        reader.kill()
        let pageCount = try pageCount()
        let said = try verify(key: 2)
        #expect(said.exitCode == 0, "\(said.text)\(said.errorText)")
        #expect(said.text.contains("owed: \(pageCount) pages"), "\(said.text)")
        #expect(try verify(key: 1).exitCode == 12)
        try expectSound(path, key: [UInt8](repeating: 2, count: 32))
    }

    @Test func `a damaged frame of a stale page is reported, and named by reads`() throws {
        try make()
        let peer = try Peer(["hold-read", "wal", path, "1"])
        try #require(peer.line() == "ready")
        let store = try Store(path: path, key: .numbered(1), configuration: impatient)
        try store.rekey(to: .numbered(2))
        let frame = try pageCount() / 2
        let offset = WriteAheadLog.offset(ofFrame: frame, pageByteCount: pageByteCount)
        try Damage.overwriteFromOutside(path + "-wal", at: offset + 500)
        let report = try store.verify()
        let damaged = try #require(report.damagedFramePages.first)
        #expect(report.damagedFramePages.count == 1 && report.damagedPages.isEmpty)
        #expect(damaged.content == .table("t", .leaf))
        #expect(!report.isGood && report.isCheckpointOwed)
        let said = try verify(key: 2)
        #expect(said.exitCode == 14 && said.text.contains("\(damaged)"), "\(said.text)")
        let error = expect(.damaged) {
            try store.read { try $0.rows("SELECT v FROM t").count }
        }
        #expect(error?.pages == [damaged.number])
        peer.goOn()
        _ = peer.finish()
    }

    // MARK: A checkpoint that was cut short

    /// The content of the main file where the checkpoint was when the power went.
    enum Torn: CaseIterable {
        case half, garbage, zeros

        func bytes(_ page: [UInt8]) -> [UInt8] {
            let start = self == .half ? page.count / 2 : 0
            let rest = page[start...].map { self == .zeros ? 0 : $0 ^ 0x55 }
            return page[..<start] + rest
        }
    }

    /// A copy of a store, its WAL and the rows that only the WAL has, with each page that is in the
    /// WAL torn in the main file.
    private func tear(_ torn: Torn, key: [UInt8]) throws -> String {
        try make(key: key)
        let connection = try Connection(path: path, key: .raw(key), configuration: .testing())
        try connection.execute("UPDATE t SET v = randomblob(900) WHERE id % 3 = 0")
        try connection.execute("CREATE INDEX t_v ON t(v)")
        let open = try connection.fileState()
        let log = try #require(
            try WALPages(WALFile(handle: open.handle), pageByteCount: pageByteCount))
        let copy = try crash(as: "torn.db")
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: copy)))
        let pages = (1...bytes.count / pageByteCount).filter(log.isStale)
        try #require(pages.first == 1 && pages.count > 20)
        for number in pages {
            let place = (number - 1) * pageByteCount..<number * pageByteCount
            bytes.replaceSubrange(place, with: torn.bytes(Array(bytes[place])))
        }
        // The checkpoint made the file longer, by a partial page too.
        bytes += [UInt8](repeating: 0x55, count: 700)
        try Data(bytes).write(to: URL(filePath: copy))
        connection.close()
        return copy
    }

    // A key of 48 bytes brings the salt. For one of 32 the salt is in the WAL as well.
    @Test(arguments: Torn.allCases, [[UInt8](repeating: 1, count: 32), wholeKey])
    func `pages that a power loss tore in a checkpoint are not damage`(
        torn: Torn, key: [UInt8]
    ) throws {
        try expectSound(try tear(torn, key: key), key: key)
    }

    @Test func `pages that the next checkpoint cuts off are not damage`() throws {
        try make()
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("DELETE FROM t WHERE id > 50")
        try connection.current().run("VACUUM")
        let copy = try crash(as: "shrunk.db")
        connection.close()
        let last = try pageCount(copy)
        try #require(last > (try pageCount()))
        try Damage.flip(copy, at: last * pageByteCount - 300)
        try expectSound(copy, key: [UInt8](repeating: 1, count: 32), rowCount: 50)
    }

    @Test func `a damaged page that the WAL does not have is damage next to stale ones`() throws {
        try make()
        let connection = try Connection(path: path, key: .numbered(1), configuration: .testing())
        try connection.execute("UPDATE t SET v = randomblob(900) WHERE id = 1")
        let open = try connection.fileState()
        let log = try #require(
            try WALPages(WALFile(handle: open.handle), pageByteCount: pageByteCount))
        let copy = try crash(as: "damaged.db")
        connection.close()
        let pages = 2...(try pageCount(copy))
        let fresh = try #require(pages.first { !log.isStale($0) && $0 > 3 })
        let stale = try #require(pages.first(where: log.isStale))
        for page in [fresh, stale] { try Damage.flip(copy, at: page * pageByteCount - 300) }
        for mode in [OpenMode.readOnly, .mustExist] {
            let store = try Store(
                path: copy, key: .numbered(1), mode: mode, configuration: impatient)
            let report = try store.verify()
            #expect(report.damagedPages.map(\.number) == [fresh], "\(mode): \(report)")
            #expect(report.isCheckpointOwed && !report.isGood)
            let error = expect(.damaged) {
                try store.read { try $0.rows("SELECT v FROM t").count }
            }
            #expect(error?.pages == [fresh])
            try? store.close()
        }
    }
}
