import Foundation
import Testing

@testable import Coffer

/// `coffer compact` and `coffer checkpoint`.
@Suite(.againstHanging, .onOwnThreads) struct CompactVerbTests {
    private let store: ToolStore

    init() throws {
        store = try ToolStore()
        try store.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, body)")
        let connection = try store.connect()
        try connection.transaction {
            for _ in 0..<300 {
                try connection.execute("INSERT INTO note(body) VALUES (randomblob(2000))")
            }
        }
        try connection.execute("DELETE FROM note WHERE id % 10 <> 0")
        connection.close()
    }

    @Test func `compact makes the file shorter and reports old and new size`() throws {
        let before = try Damage.byteCount(store.path)
        let output = try store.succeed("compact", ["--json", "--progress", "json"])
        let after = try Damage.byteCount(store.path)
        #expect(after < before / 5)
        #expect(output.text.contains("\"byteCount\":\(after)"))
        #expect(output.text.contains("\"isShortened\":true"))
        #expect(output.text.contains("\"rowCount\":30"))
        #expect(output.errorText.contains("\"progress\":\"compact: replace\""))
        #expect(try store.rows("SELECT count(*) FROM note") == [[30]])
    }

    @Test func `beside a program that reads, compact exits with 18, and checkpoint finishes it`()
        throws
    {
        let before = try Damage.byteCount(store.path)
        let peer = try Peer(["hold-schema", "wal", store.path, "1"])
        try #require(peer.line() == "ready")
        let output = try store.run("compact")
        #expect(output.exitCode == 18, "\(output.errorText)")
        #expect(output.errorText.contains("coffer checkpoint"))
        let busy = try store.run("checkpoint", ["--busy-timeout", "0.05"])
        #expect(busy.exitCode == 11, "\(busy.errorText)")
        peer.goOn()
        _ = peer.finish()
        try store.succeed("checkpoint")
        #expect(try Damage.byteCount(store.path) < before / 5)
    }

    @Test func `checkpoint says what it moved, and that a store without a WAL has nothing to move`()
        throws
    {
        let connection = try store.connect()
        try connection.execute("INSERT INTO note(body) VALUES ('new')")
        let moved = try store.succeed("checkpoint", ["--json"])
        #expect(moved.text.contains("\"hasWAL\":true"))
        #expect(!moved.text.contains("\"walByteCount\":0,"))
        #expect((try? Damage.byteCount(store.path + "-wal")) ?? 0 == 0)
        connection.close()
        let configuration = Configuration.testing(.delete)
        try Connection(path: store.path, key: .numbered(1), configuration: configuration).close()
        #expect(try store.succeed("checkpoint").text.contains("nothing to move"))
    }

    @Test func `compact of a damaged store exits with 14 and changes nothing`() throws {
        let size = 4096
        let pageCount = try Damage.byteCount(store.path) / size
        for page in 2..<pageCount { try Damage.flip(store.path, at: page * size + 100) }
        let before = try Data(contentsOf: URL(filePath: store.path))
        #expect(try store.run("compact").exitCode == 14)
        #expect(try Data(contentsOf: URL(filePath: store.path)) == before)
    }
}
