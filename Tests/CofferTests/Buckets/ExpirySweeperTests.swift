import Foundation
import Testing
import Workload

@testable import Coffer

/// Stores that sweep expired entries by themselves.
@Suite(.againstHanging) struct ExpirySweeperTests {
    private let folder: TemporaryFolder
    private let clock = HandClock()
    private let codes = Bucket<Int, String>("codes")

    init() throws { folder = try TemporaryFolder() }

    private func open(
        _ mode: Configuration.JournalMode = .wal, every interval: Duration? = .milliseconds(1)
    ) throws -> Store {
        var configuration = Configuration.testing(mode)
        let clock = clock
        configuration.currentDate = { clock.date }
        configuration.expirySweepInterval = interval
        return try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
    }

    /// The rows of the bucket's table, also of entries that have expired.
    private func rowCount(_ store: Store) throws -> Int {
        try store.read { tx in
            guard try tx.tableExists("bucket:codes") else { return 0 }
            return try tx.requireScalar("SELECT count(*) FROM \"bucket:codes\"")
        }
    }

    @Test(arguments: journalModes)
    func `entries that have expired go without a call, and others stay`(
        mode: Configuration.JournalMode
    ) async throws {
        let store = try open(mode)
        try await store.write { tx in
            for number in 0..<1000 {
                let isShort = number % 2 == 0
                try tx.set(
                    "code", for: number, in: codes,
                    expiring: isShort ? .after(.milliseconds(50)) : .never)
            }
        }
        #expect(try rowCount(store) == 1000)
        clock.advance(by: 0.06)
        #expect(try await comes { try rowCount(store) == 500 })
        #expect(try await store.count(in: codes) == 500)
    }

    @Test func `an entry that is set after the last one went is swept too`() async throws {
        let store = try open()
        for number in 0..<5 {
            try await store.set("code", for: number, in: codes, expiring: .after(.milliseconds(50)))
            clock.advance(by: 0.06)
            #expect(try await comes { try rowCount(store) == 0 })
        }
    }

    @Test func `an entry that ends before the others does not wait for them`() async throws {
        let store = try open()
        try await store.set("code", for: 1, in: codes, expiring: .after(.seconds(86_400)))
        for _ in 0..<3 {
            try await store.set("code", for: 2, in: codes, expiring: .after(.milliseconds(50)))
            clock.advance(by: 0.06)
            #expect(try await comes { try rowCount(store) == 1 })
        }
    }

    @Test func `a touch that gives the first time of expiry begins it`() async throws {
        let store = try open()
        try await store.set("code", for: 1, in: codes)
        try await store.touch(1, in: codes, expiring: .after(.milliseconds(50)))
        clock.advance(by: 0.06)
        #expect(try await comes { try rowCount(store) == 0 })
    }

    @Test func `it goes on after the store was suspended`() async throws {
        let store = try open()
        try await store.set("code", for: 1, in: codes, expiring: .after(.milliseconds(50)))
        try await store.suspend()
        clock.advance(by: 0.06)
        try await store.resume()
        #expect(try await comes { try rowCount(store) == 0 })
    }

    @Test func `without an interval, entries stay until somebody sweeps`() async throws {
        let store = try open(every: nil)
        try await store.set("code", for: 1, in: codes, expiring: .after(.milliseconds(50)))
        clock.advance(by: 0.06)
        try await store.set("code", for: 2, in: codes)
        #expect(try rowCount(store) == 2)
        #expect(try await store.sweepExpiredEntries() == 1)
    }

    @Test func `two stores that sweep the same entries remove each once`() async throws {
        let store = try open()
        let other = try Connection(path: folder.path(), key: .numbered(1))
        defer { other.close() }
        try await store.write { tx in
            for number in 0..<600 {
                try tx.set("code", for: number, in: codes, expiring: .after(.milliseconds(50)))
            }
        }
        clock.advance(by: 0.06)
        // As another process would.
        let removed = try other.transaction {
            try other.execute("DELETE FROM \"bucket:codes\" WHERE key < 300")
            return 300
        }
        #expect(removed == 300)
        #expect(try await comes { try rowCount(store) == 0 })
    }

    @Test func `a closed store is not kept by its timer`() async throws {
        weak var core: StoreCore?
        do {
            let store = try open(every: .seconds(3600))
            core = store.core
            try await store.set("code", for: 1, in: codes, expiring: .after(.milliseconds(50)))
            try await store.close()
        }
        let isGone = await comes { core == nil }
        #expect(isGone)
    }
}
