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

    private func store(_ path: String, _ key: consuming StoreKey) throws -> Store {
        var configuration = Configuration.testing()
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
}
