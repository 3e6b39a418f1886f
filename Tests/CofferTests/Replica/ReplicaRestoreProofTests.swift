import Foundation
import Synchronization
import Testing
import Workload

@testable import Coffer
@testable import CofferReplica

/// The last step of a restore: every page is authenticated while SQLite checks the structure.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaRestoreProofTests {
    private let fixture: ReplicaFixture

    init() throws {
        fixture = try ReplicaFixture()
    }

    private func expectFailure(_ code: StoreError.Code) async throws -> StoreError? {
        let error = await #expect(throws: StoreError.self) { try await restore() }
        #expect(error?.code == code)
        try expectNoFile()
        return error
    }

    private func restore(progress: (@Sendable (CopyProgress) -> Void)? = nil) async throws {
        try await Store.restore(
            from: fixture.remote, to: fixture.folder.path("copy.db"), key: .numbered(1),
            configuration: .testing(), progress: progress)
    }

    private func expectNoFile() throws {
        let names = try FileManager.default.contentsOfDirectory(
            atPath: fixture.folder.url.path)
        #expect(!names.contains { $0.hasPrefix("copy") }, "\(names)")
    }

    @Test func `a page that its key did not write is damage, although the tags are right`()
        async throws
    {
        let store = try fixture.makeStore()
        try fixture.insert(1...30, in: store)
        let keys = try await {
            let replica = try await store.replicate(to: fixture.remote, fixture.options)
            try await replica.close()
            return try await fixture.keys(of: store)
        }()
        try await store.close()
        // As an owner whose memory had an error sends it.
        let slot = Slot(term: 1, number: 1)
        let (header, record) = try SealedRecord(
            #require(fixture.remote.objects[slot.name]), at: slot
        ).open(by: keys)
        var changed = record
        let page = record.pages[4]
        var bytes = Array(page.bytes)
        bytes[100] ^= 1
        changed.pages[4] = ReplicaRecord.Page(number: page.number, bytes: bytes[...])
        fixture.remote.objects = fixture.remote.objects.filter {
            $0.key <= slot.name || $0.key == ReplicaDescription.name
        }
        fixture.remote.objects[slot.name] = try SealedRecord(
            .segment, changed, at: slot, after: header.previous, by: keys
        ).bytes
        let error = try await expectFailure(.damaged)
        #expect(error?.pages == [Int(page.number)])
    }

    @Test func `a structure that is not sound is damage, and no file gets the name`() async throws {
        try {
            let raw = try RawConnection(fixture.folder.path(), key: 1)
            for sql in [
                "CREATE TABLE u(a, b)", "CREATE INDEX i ON u(a)", "INSERT INTO u VALUES (1, 2)",
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON u(b)' WHERE name = 'i'",
            ] {
                #expect(raw.run(sql) == 0, "\(sql)")
            }
        }()
        let store = try fixture.open()
        let replica = try await store.replicate(to: fixture.remote, fixture.options)
        try await replica.close()
        try await store.close()
        let error = try await expectFailure(.damaged)
        #expect(error?.message.contains("structure") == true)
    }

    @Test func `a restore that is cancelled among the proofs leaves no file`() async throws {
        let store = try fixture.makeStore()
        try fixture.insert(1...600, in: store)
        let replica = try await store.replicate(to: fixture.remote, fixture.options)
        try await replica.close()
        try await store.close()
        let restoring = Mutex<Task<Void, any Error>?>(nil)
        let isStarted = AsyncStream<Void>.makeStream()
        let task = Task {
            for await _ in isStarted.stream { break }
            try await restore { progress in
                guard progress.step == .verifyingPages else { return }
                restoring.withLock { $0?.cancel() }
            }
        }
        restoring.withLock { $0 = task }
        isStarted.continuation.yield()
        await #expect(throws: CancellationError.self) { try await task.value }
        try expectNoFile()
        try await restore()
    }
}
