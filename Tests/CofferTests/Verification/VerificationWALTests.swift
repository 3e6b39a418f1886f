import CSQLCipher
import Foundation
import Testing
import Workload

@testable import Coffer

/// The state that a crash leaves: a store with a WAL that was not checkpointed.
@Suite(.againstHanging, .onOwnThreads) struct VerificationWALTests {
    private let folder: TemporaryFolder
    private let path: String
    private let frameByteCount: Int

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path("crashed.db")
        frameByteCount = try Engine.capabilities.defaultProfile.pageByteCount + 24
    }

    /// An open store whose WAL holds the commits of this many rows and nothing else.
    private func makeOpen(_ name: String = "store.db", rowCount: Int = 5) throws -> Connection {
        let connection = try Connection(
            path: folder.path(name), key: .numbered(1), configuration: .testing())
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        for _ in 0..<rowCount { try insert(connection) }
        return connection
    }

    private func insert(_ connection: Connection) throws {
        try connection.execute("INSERT INTO t(v) VALUES (zeroblob(900))")
    }

    /// Copies the store and its WAL as a crash leaves them, while they are open.
    private func crash(_ name: String = "store.db", as copy: String = "crashed.db") throws {
        for suffix in ["", "-wal"] {
            let copied = try Tool.runProgram([
                "cp", folder.path(name + suffix), folder.path(copy + suffix),
            ])
            try #require(copied.exitCode == 0)
        }
    }

    private func log(_ name: String) throws -> Data {
        try Data(contentsOf: URL(filePath: folder.path(name + "-wal")))
    }

    private func offset(ofFrame index: Int) -> Int { 32 + index * frameByteCount }

    private func verify(_ mode: OpenMode = .mustExist) throws -> VerificationReport {
        let store = try Store(
            path: path, key: .numbered(1), mode: mode, configuration: .testing())
        defer { try? store.close() }
        return try store.verify()
    }

    // Offsets in frame 3: its commit mark and page, its salt, its stored checksum, its content.
    @Test(arguments: [0, 8, 16, 500], [OpenMode.mustExist, .readOnly])
    func `commits that recovery cut off are reported`(offset: Int, mode: OpenMode) throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        try Damage.flip(path + "-wal", at: self.offset(ofFrame: 2) + offset)
        let report = try verify(mode)
        #expect(report.frameCount == 2)
        #expect(report.damagedFramePages.count == 1)
        #expect(report.problems.contains { $0.contains("frame 3") }, "\(report)")
        #expect(!report.isGood)
    }

    @Test func `a WAL whose header is damaged is reported`() throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        try Damage.flip(path + "-wal", at: 13)
        let report = try verify()
        #expect(report.frameCount == 0 && !report.isGood)
        #expect(report.damagedFramePages.map(\.number) == [0])
    }

    @Test func `the tool reports it and leaves the WAL as it is`() throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        try Damage.flip(path + "-wal", at: offset(ofFrame: 2) + 500)
        let before = try log("crashed.db")
        for _ in 0..<2 {
            let output = try Tool.run(
                ["verify", path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == 14, "\(output.text)\(output.errorText)")
            #expect(output.text.contains("cut off"))
            #expect(try log("crashed.db") == before)
        }
    }

    @Test func `a change of the key warns of the commits that are lost with it`() throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        try Damage.flip(path + "-wal", at: offset(ofFrame: 2) + 500)
        let output = try Tool.run(
            ["rekey", path, "--raw-key-fd", "3", "--new-raw-key-fd", "4"],
            descriptors: [3: Tool.key(1), 4: Tool.key(2)])
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("cut off"))
    }

    @Test func `a sound WAL of a crash is good, and the tool leaves it`() throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        let before = try log("crashed.db")
        let output = try Tool.run(
            ["verify", path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(output.exitCode == 0, "\(output.text)\(output.errorText)")
        #expect(try log("crashed.db") == before)
        let report = try verify()
        #expect(report.isGood && report.frameCount > 0, "\(report)")
    }

    @Test func `frames of a transaction that was rolled back are not damage`() throws {
        let connection = try makeOpen(rowCount: 1)
        let handle = try connection.current()
        try handle.run("PRAGMA cache_size = 10")
        struct Undo: Error {}
        #expect(throws: Undo.self) {
            try connection.transaction {
                for _ in 0..<300 { try insert(connection) }
                throw Undo()
            }
        }
        let spilled = try log("store.db").count
        try insert(connection)
        try crash()
        connection.close()
        #expect(spilled > offset(ofFrame: 20))
        let report = try verify()
        #expect(report.isGood, "\(report)")
    }

    @Test func `an old commit behind a shorter one is not damage`() throws {
        // A process is killed between writing its commit and publishing it in the WAL index.
        // Another one that has the store open goes on and overwrites only the first of those
        // frames.
        let connection = try makeOpen(rowCount: 1)
        try crash(as: "other.db")
        try connection.transaction { for _ in 0..<20 { try insert(connection) } }
        let long = try log("store.db")
        connection.close()
        let other = try Connection(
            path: folder.path("other.db"), key: .numbered(1), configuration: .testing())
        try other.execute("INSERT INTO t(v) VALUES (1)")
        let short = try log("other.db")
        try crash("other.db")
        other.close()
        try #require(short.count < long.count && short[16..<24] == long[16..<24])
        try (short + long[short.count...]).write(to: URL(filePath: path + "-wal"))
        let report = try verify()
        #expect(report.isGood, "\(report)")
    }

    @Test func `a last commit that is torn was never made`() throws {
        let connection = try makeOpen()
        try crash()
        connection.close()
        let byteCount = try Damage.byteCount(path + "-wal")
        try Damage.flip(path + "-wal", at: byteCount - 100)
        let report = try verify()
        #expect(report.isGood, "\(report)")
    }

    // MARK: Next to a writer

    @Test func `a read-only verify next to a WAL that restarts gives no false alarm`()
        async throws
    {
        let path = folder.path()
        try makeOpen(rowCount: 300).close()
        let store = try await Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: .testing())
        let end = ContinuousClock.now + .seconds(isLongRun ? 30 : 3)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while ContinuousClock.now < end {
                    let report = try await store.verify()
                    #expect(report.isGood, "\(report)")
                }
            }
            group.addTask {
                let other = try Connection(
                    path: path, key: .numbered(1), configuration: .testing())
                var random = SeededGenerator(for: "a log that starts anew")
                while ContinuousClock.now < end {
                    try other.execute("UPDATE t SET v = randomblob(900) WHERE id % 3 = 0")
                    _ = try? other.rows("PRAGMA wal_checkpoint")
                    // Time for a check to begin while the whole WAL is checkpointed.
                    try await Task.sleep(for: .milliseconds(Int.random(in: 1...30, using: &random)))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test(arguments: [true, false])
    func `a WAL that restarts during the check is checked again`(isLocked: Bool) throws {
        let writer = try makeOpen()
        _ = try writer.rows("PRAGMA wal_checkpoint")
        let reader = try Connection(
            path: folder.path(), key: .numbered(1), mode: .readOnly, configuration: .testing())
        try reader.transaction(.deferred) {
            _ = try reader.rows("SELECT count(*) FROM t")
            let open = try reader.fileState()
            let pages = RawPages(open.handle, key: open.key, profile: open.profile)
            var insertCount = 0
            let check = WALCheck(log: WALFile(handle: open.handle)) {
                guard insertCount == 0 else { return }
                insertCount += 1
                #expect(throws: Never.self) { try insert(writer) }
            }
            let found = try check.run(pages, isLocked: isLocked)
            // A caller that wrongly claims to hold the lock gets damage.
            #expect(found.isGood == !isLocked, "\(found)")
        }
    }

    // MARK: The WAL index

    @Test func `an index that lies is not believed`() throws {
        let connection = try makeOpen()
        _ = try connection.rows("SELECT count(*) FROM t")
        let open = try connection.fileState()
        let log = WALFile(handle: open.handle)
        let count = try #require(try log.index()).committedFrameCount
        #expect(count >= 5)
        var header = [UInt8](repeating: 0, count: 96)
        #expect(coffer_read_wal_index(open.handle.db, &header) == SQLITE_OK)
        try connection.transaction(.deferred) {
            _ = try connection.rows("SELECT count(*) FROM t")
            header.replaceSubrange(16..<20, with: [255, 255, 255, 255])
            try forge(header)
            // The copies differ.
            expect(.busy) { try log.index() }
            header.replaceSubrange(48..<96, with: header[..<48])
            try forge(header)
            // The checksum is wrong.
            expect(.busy) { try log.index() }
            var sum = WALChecksum(isBigEndian: UInt32(bigEndian: 1) == 1)
            sum.add(header[..<40])
            withUnsafeBytes(of: sum.words) { header.replaceSubrange(40..<48, with: $0) }
            header.replaceSubrange(48..<96, with: header[..<48])
            try forge(header)
            #expect(try log.index()?.committedFrameCount == 0xffff_ffff)
            let pages = RawPages(open.handle, key: open.key, profile: open.profile)
            let found = try WALCheck(log: log).run(pages, isLocked: true)
            #expect(found.frameCount == count && found.damagedPages == [0])
            let inWAL = try WALPages(log, pageByteCount: pages.byteCount)
            #expect(inWAL?.stalePageCount ?? 0 > 0)
        }
    }

    /// Writes the two headers of the WAL index from outside the process.
    private func forge(_ headers: [UInt8]) throws {
        try Data(headers).write(to: URL(filePath: folder.path("forged")))
        let written = try Tool.runProgram([
            "dd", "if=\(folder.path("forged"))", "of=\(folder.path("store.db-shm"))",
            "conv=notrunc",
        ])
        try #require(written.exitCode == 0)
    }

    // MARK: What the structure needs

    /// A store with a program's own collation.
    private func makeForeign() throws {
        let raw = try RawConnection(path, key: 1)
        sqlite3_create_collation_v2(
            raw.db, "mine", SQLITE_UTF8, nil, { _, a, _, b, _ in a < b ? -1 : a > b ? 1 : 0 }, nil)
        #expect(raw.run("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT COLLATE mine)") == 0)
        #expect(raw.run("CREATE INDEX t_v ON t(v); INSERT INTO t(v) VALUES ('a')") == 0)
    }

    @Test func `a collation that is not registered is not damage`() throws {
        try makeForeign()
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        let report = try store.verify()
        #expect(report.isGood && !report.isStructureChecked, "\(report)")
        #expect(report.structureFailure?.contains("mine") == true)
        try store.backup(to: folder.path("backup.db"))
        let output = try Tool.run(
            ["verify", path, "--raw-key-fd", "3"], descriptors: [3: Tool.key(1)])
        #expect(output.exitCode == 0 && output.text.contains("mine"), "\(output.text)")
    }

    @Test func `a damaged page is damage next to such a collation too`() throws {
        try makeForeign()
        // Page 2 of the three, in the engine's default format.
        let size = try Damage.byteCount(path) / 3
        try Damage.flip(path, at: size + 99)
        let store = try Store(path: path, key: .numbered(1), configuration: .testing(.delete))
        let report = try store.verify()
        #expect(!report.isGood && report.damagedPages.map(\.number) == [2])
    }

    // MARK: Pages that cannot be read

    @Test func `a bad sector is a damaged page, and the others are checked`() throws {
        let made = try makeOpen(rowCount: 100)
        made.close()
        try #require(rename(folder.path(), path) == 0)
        var configuration = Configuration.testing(.delete)
        configuration.maximumReaderCount = 1
        let store = try Store(path: path, key: .numbered(1), configuration: configuration)
        try BadSector.install(on: try store.core.pool.writer.current())
        let report = try store.verify()
        #expect(report.damagedPages.map(\.number) == [BadSector.page])
        #expect(report.pageCount == report.pageCountTotal)
        #expect(!report.isGood)
        let handle = try store.core.pool.writer.current()
        let size = try Engine.capabilities.defaultProfile.pageByteCount
        let error = expect(.io) {
            _ = try handle.rawBytes(at: (BadSector.page - 1) * size, count: size)
        }
        #expect(error?.message == String(cString: sqlite3_errstr(SQLITE_IOERR)))
    }
}

/// Makes reads that include one page of an open file fail as a bad sector does.
private enum BadSector {
    static let page = 7
    nonisolated(unsafe) private static var original: UnsafePointer<sqlite3_io_methods>?
    nonisolated(unsafe) private static var offset: Int64 = 0

    static func install(on handle: Handle) throws {
        offset = Int64(try Engine.capabilities.defaultProfile.pageByteCount * (page - 1))
        var file: UnsafeMutablePointer<sqlite3_file>?
        sqlite3_file_control(handle.db, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        let opened = try #require(file)
        original = opened.pointee.pMethods
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: try #require(original).pointee)
        methods.pointee.xRead = { file, buffer, byteCount, offset in
            let read = offset..<offset + Int64(byteCount)
            guard !read.contains(BadSector.offset) else { return SQLITE_IOERR | 1 << 8 }
            // The original method finds its file by the table that it is called through.
            guard let file, let original = BadSector.original else { return SQLITE_MISUSE }
            let failing = file.pointee.pMethods
            file.pointee.pMethods = original
            defer { file.pointee.pMethods = failing }
            return original.pointee.xRead(file, buffer, byteCount, offset)
        }
        opened.pointee.pMethods = UnsafePointer(methods)
    }
}
