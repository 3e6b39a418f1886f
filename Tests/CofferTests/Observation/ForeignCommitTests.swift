import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ForeignCommitTests {
    private func fixture(
        _ mode: Configuration.JournalMode = .wal, every interval: Duration? = .milliseconds(5)
    ) throws -> ObservationFixture {
        try ObservationFixture(mode) { $0.foreignCommitInterval = interval }
    }

    private func insertElsewhere(_ fixture: ObservationFixture) throws {
        let mode = fixture.store.journalMode.description
        #expect(try Peer.run(["insert", mode, fixture.path, "1", "7"]) == ["inserted"])
    }

    @Test(arguments: journalModes)
    func `another process's commit to an observed table is noticed`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try fixture(mode)
        let values = fixture.store.observe { tx in
            try tx.scalar("SELECT count(*) FROM t", as: Int.self)
        }
        let loop = values.makeAsyncIterator()
        let events = fixture.store.changes(in: "t").makeAsyncIterator()
        for count in 0..<3 {
            let value = try await loop.next()
            #expect(value == count)
            try insertElsewhere(fixture)
            let told = try await events.rows()
            #expect(told == ["rescan elsewhere"])
        }
    }

    @Test(arguments: journalModes)
    func `the store's own commits are not taken for someone else's`(
        mode: Configuration.JournalMode
    ) async throws {
        let fixture = try fixture(mode, every: .milliseconds(1))
        let events = fixture.store.changes(in: "t").makeAsyncIterator()
        for id in 1...50 {
            try await fixture.store.write { tx in try tx.execute("INSERT INTO t(id) VALUES (\(id))")
            }
            try? await fixture.store.write { tx in
                try tx.execute("INSERT INTO t(id) VALUES (1000)")
                throw Undo()
            }
            _ = try await fixture.store.read { tx in try tx.rows("SELECT * FROM t").count }
            let told = try await events.rows()
            #expect(told == ["insert t \(id)"])
        }
    }

    @Test func `without polling, the next write notices`() async throws {
        let fixture = try fixture(every: nil)
        let events = fixture.store.changes(in: "t").makeAsyncIterator()
        try insertElsewhere(fixture)
        try fixture.run("INSERT INTO other VALUES (1)")
        let told = try await events.rows()
        #expect(told == ["rescan elsewhere"])
        #expect(!fixture.store.core.observation.isPolling)
    }

    @Test func `another connection of the same process counts as another process`() async throws {
        let fixture = try fixture()
        let events = fixture.store.changes(in: "t").makeAsyncIterator()
        let connection = try Connection(
            path: fixture.path, key: .numbered(1), configuration: .testing())
        try connection.execute("INSERT INTO t(id) VALUES (1)")
        let told = try await events.rows()
        #expect(told == ["rescan elsewhere"])
    }

    @Test func `a store that is open for reading only observes others`() async throws {
        let fixture = try fixture()
        let path = fixture.path
        try await fixture.store.close()
        var configuration = Configuration.testing()
        configuration.foreignCommitInterval = .milliseconds(5)
        let store = try await Store(
            path: path, key: .numbered(1), mode: .readOnly, configuration: configuration)
        let values = store.observe { tx in try tx.scalar("SELECT count(*) FROM t", as: Int.self) }
        let loop = values.makeAsyncIterator()
        let events = store.changes(in: "t").makeAsyncIterator()
        var value = try await loop.next()
        #expect(value == 0)
        try insertElsewhere(fixture)
        value = try await loop.next()
        #expect(value == 1)
        let told = try await events.rows()
        #expect(told == ["rescan elsewhere"])
    }
}
