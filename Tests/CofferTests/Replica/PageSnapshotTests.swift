import Foundation
import Testing
import Workload

@testable import Coffer

/// The pages of a store as one read transaction sees them.
@Suite(.againstHanging, .onOwnThreads) struct PageSnapshotTests {
    @Test(arguments: [false, true])
    func `a snapshot beside commits has the WAL's frames of its own transaction`(
        hasKeyring: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let store = try store(folder.path(), hasKeyring ? KeyringVerb.key(1) : .numbered(1))
        let isDone = Shared(false)
        let writer = onThread {
            // Each commit makes the file longer. Their number is limited, since a long WAL makes
            // each snapshot slow.
            for _ in 0..<2000 where !isDone.value {
                try store.write { tx in
                    try tx.execute("INSERT INTO t VALUES (randomblob(5000))")
                }
            }
        }
        let found = Result { try difference(in: store) }
        isDone.value = true
        try await writer.value
        #expect(try found.get() == nil)
        try await store.close()
    }

    private func store(
        _ path: String, _ key: consuming StoreKey,
        stamp: (@Sendable (FileLocation) -> FileStamp?)? = nil
    ) throws -> Store {
        var configuration = Configuration.testing()
        if let stamp { configuration.stampOfOldFile = stamp }
        configuration.checkpointPageCount = 20
        let store = try Store(path: path, key: key, configuration: configuration)
        try store.write { tx in try tx.execute("CREATE TABLE t(filler)") }
        return store
    }

    /// The first snapshot whose transaction sees another number of pages than its frames make.
    private func difference(in store: Store) throws -> String? {
        let source = try store.replicaSource()
        for _ in 0..<200 {
            let (seen, index) = try store.withPages(of: source) { snapshot in
                (snapshot.pageCount, snapshot.index)
            }
            guard let index, index.committedFrameCount > 0 else { continue }
            guard seen == index.pageCount else {
                return "\(seen) pages, and \(index.pageCount) in the WAL"
            }
        }
        return nil
    }

    @Test func `while the log has no frame, the stamp of the file tells its state, if it is old`()
        throws
    {
        let folder = try TemporaryFolder()
        let stamp = Shared<FileStamp?>(nil)
        let store = try store(folder.path(), .numbered(1)) { _ in stamp.value }
        let source = try store.replicaSource()
        func version() throws -> PageVersion? { try store.withPages(of: source) { $0.version } }
        let logged = try #require(try version())
        #expect(logged.isCertain)
        try store.checkpoint(.truncate)
        #expect(try version() == nil)
        stamp.value = .numbered(1)
        let found = try #require(try version())
        #expect(!found.isCertain && found != logged)
        #expect(try version() == found)
        #expect(try store.withPages(of: source, since: found) { _ in true } == nil)
        try store.write { tx in try tx.execute("INSERT INTO t VALUES (1)") }
        #expect(try version()?.isCertain == true)
        try store.checkpoint(.truncate)
        stamp.value = .numbered(2)
        #expect(try store.withPages(of: source, since: found) { _ in true } == true)
        // The stamp is of the name, which leads to another file, or to none.
        try FileManager.default.moveItem(atPath: folder.path(), toPath: folder.path("moved"))
        #expect(try version() == nil)
    }

    @Test func `the stamp of a file is of no use before all its times are old`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("file")
        try Data([1]).write(to: URL(filePath: path))
        #expect(try FileStamp.ofOldFile(at: FileLocation(path)) == nil)
        // A program can set the time of the last write, and not that of this change.
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -1000)], ofItemAtPath: path)
        #expect(try FileStamp.ofOldFile(at: FileLocation(path)) == nil)
        let old = try FileLocation("/bin/cp")
        let stamp = try #require(FileStamp.ofOldFile(at: old))
        #expect(FileStamp.ofOldFile(at: old) == stamp)
    }
}

extension FileStamp {
    /// A stamp that differs from those of other numbers.
    static func numbered(_ number: Int) -> FileStamp {
        var found = stat()
        found.st_size = off_t(number)
        return FileStamp(found)
    }
}
