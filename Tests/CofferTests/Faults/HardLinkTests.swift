import Foundation
import Testing

@testable import Coffer

/// A file under several names: each name has its own WAL or journal.
@Suite(.againstHanging, .onOwnThreads) struct HardLinkTests {
    private let folder: TemporaryFolder
    private let path: String
    private let log = LogRecorder()

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    private func configuration(
        _ mode: Configuration.JournalMode, _ hardLinks: Configuration.HardLinks = .told
    ) -> Configuration {
        var configuration = Configuration.testing(mode)
        configuration.hardLinks = hardLinks
        configuration.logger = log.logger
        return configuration
    }

    private func make(_ mode: Configuration.JournalMode) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(v)")
        connection.close()
    }

    private func linkAs(_ name: String) throws {
        try FileManager.default.linkItem(atPath: path, toPath: folder.path(name))
    }

    private var warnings: [LogRecorder.Entry] { log.events.filter { $0.level == .warning } }

    // MARK: Rekey

    @Test(arguments: journalModes)
    func `the key of a file with two names is not changed, under either`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        try linkAs("other.db")
        for path in [path, folder.path("other.db")] {
            let store = try Store(
                path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(mode))
            let error = expect(.readOnly) { try store.rekey(to: .numbered(2)) }
            #expect(error?.message.contains("2 names") == true)
            #expect(error?.hint?.contains("-samefile") == true)
            // The store is still open and usable.
            try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
            try store.close()
            let connection = try Connection(
                path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(mode))
            expect(.readOnly) { try connection.rekey(to: .numbered(2)) }
            #expect(try connection.rows("SELECT v FROM t").isEmpty == false)
            connection.close()
        }
        try FileManager.default.removeItem(atPath: folder.path("other.db"))
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.rekey(to: .numbered(2))
        connection.close()
    }

    @Test func `a name that was made while the store is open counts`() throws {
        try make(.wal)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        try linkAs("other.db")
        expect(.readOnly) { try store.rekey(to: .numbered(2)) }
        try FileManager.default.removeItem(atPath: folder.path("other.db"))
        try store.rekey(to: .numbered(2))
        try store.close()
    }

    // MARK: Opening

    @Test(arguments: journalModes)
    func `opening reports several names once, with their number`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        try linkAs("b.db")
        try linkAs("c.db")
        let store = try Store(path: path, key: .numbered(1), configuration: configuration(mode))
        _ = try store.read { tx in try tx.rows("SELECT * FROM t") }
        try store.close()
        #expect(warnings.map(\.text) == ["warning the file has several names"])
        #expect(warnings[0].metadata["count"] == "3")
        #expect(warnings[0].metadata["path"] == "\(path)")
        log.forget()
        try Connection(path: path, key: .numbered(1), configuration: configuration(mode)).close()
        #expect(warnings.count == 1)
        #expect(try StoreFileStatus(path: path).nameCount == 3)
    }

    @Test func `one name is not reported`() throws {
        try make(.wal)
        try Connection(path: path, key: .numbered(1), configuration: configuration(.wal, .refused))
            .close()
        #expect(warnings.isEmpty)
        #expect(try StoreFileStatus(path: path).nameCount == 1)
    }

    @Test(arguments: journalModes)
    func `where the configuration says so, a file with two names is opened for reading only`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        try linkAs("other.db")
        let refusing = configuration(mode, .refused)
        for openMode in [OpenMode.mustExist, .createIfMissing] {
            expect(.readOnly) {
                try Store(path: path, key: .numbered(1), mode: openMode, configuration: refusing)
            }
            expect(.readOnly) {
                try Connection(
                    path: path, key: .numbered(1), mode: openMode, configuration: refusing)
            }
        }
        #expect(warnings.isEmpty)
        let store = try Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: refusing)
        #expect(try store.read { tx in try tx.rows("SELECT * FROM t") }.isEmpty)
        try store.close()
        #expect(warnings.count == 1)
    }

    // MARK: A maker's own second name

    @Test func `a name that a killed maker left does not lock the owner out`() throws {
        try make(.wal)
        // `FileLocation.adopt` without exclusive rename, killed between `link` and `unlink`.
        try linkAs("store.db.new-0123456789abcdef")
        try Data().write(to: URL(filePath: folder.path("store.db.new-0123456789abcdef-lock")))
        let store = try Store(
            path: path, key: .numbered(1), configuration: configuration(.wal, .refused))
        try store.rekey(to: .numbered(2))
        try store.close()
        #expect(warnings.isEmpty)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.contains(".new-") })
    }

    @Test func `a maker's name that it is about to remove is not counted and stays`() throws {
        try make(.wal)
        let twin = "store.db.new-0123456789abcdef"
        let lock = try #require(try MakerLock.making(folder.path(twin + "-lock"), for: path))
        try linkAs(twin)
        #expect(try FileLocation(path).nameCount() == 1)
        #expect(FileManager.default.fileExists(atPath: folder.path(twin)))
        // Without a lock the name may be anybody's.
        lock.remove()
        #expect(try FileLocation(path).nameCount() == 2)
        #expect(FileManager.default.fileExists(atPath: folder.path(twin)))
    }

    // A maker without exclusive rename gives the file two names for a moment. A rekey that read
    // the number in that moment, and looked for the other name after it, refused the file.
    @Test func `a maker's name that it takes back while names are counted is not counted`()
        async throws
    {
        try make(.wal)
        let file = try FileLocation(path)
        let twin = "store.db.new-0123456789abcdef"
        let twinPath = folder.path(twin)
        for _ in 0..<1000 {
            let lock = try #require(try MakerLock.making(twinPath + "-lock", for: path))
            try linkAs(twin)
            let delay = UInt32.random(in: 0...150)
            let maker = onThread {
                usleep(delay)
                unlinkIfPresent(twinPath)
                lock.remove()
                lock.release()
            }
            let count = Result { try file.nameCount() }
            try file.requireOneName()
            try await maker.value
            #expect(try count.get() == 1)
        }
    }

    @Test func `another file that was left there does not count as a name`() throws {
        try make(.wal)
        try linkAs("other.db")
        let left = folder.path("store.db.new-0123456789abcdef")
        for name in [left, left + "-lock"] { try Data("x".utf8).write(to: URL(filePath: name)) }
        #expect(try FileLocation(path).nameCount() == 2)
        // Opening a store removes nothing else.
        #expect(FileManager.default.fileExists(atPath: left))
    }
}
