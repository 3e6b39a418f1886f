import Foundation
import Testing
import Workload

@testable import Coffer

/// Stores that sweep expired entries by themselves.
@Suite(.againstHanging, .onOwnThreads) struct ExpirySweeperTests {
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

    @Test func `a bucket that keeps its entries does not keep the store from sweeping others`()
        async throws
    {
        let store = try open()
        let kept = Bucket<Int, String>("a")
        try await store.write { tx in
            try tx.set("kept", for: 0, in: kept, expiring: .after(.milliseconds(50)))
            try tx.execute(
                """
                CREATE TRIGGER keep BEFORE DELETE ON "bucket:a"
                BEGIN SELECT RAISE(ABORT, 'kept'); END
                """)
            for number in 0..<1000 {
                try tx.set("code", for: number, in: codes, expiring: .after(.milliseconds(50)))
            }
        }
        clock.advance(by: 0.06)
        #expect(try await comes { try rowCount(store) == 0 })
        try await store.write { tx in try tx.execute("DROP TRIGGER keep") }
        #expect(
            try await comes {
                try store.read { tx in
                    try tx.requireScalar("SELECT count(*) FROM \"bucket:a\"") == 0
                }
            })
    }

    @Test func `beside other writes few of them meet a slice, unless it is late`() {
        func rest(_ delay: Double) -> Duration {
            ExpirySweeper.rest(
                after: .milliseconds(10), delay: .seconds(delay), interval: .seconds(60))
        }
        func isAbout(_ duration: Duration, _ seconds: Double) -> Bool {
            abs(duration / .seconds(1) - seconds) < 0.001
        }
        // Half a percent of the time, from 120 s on more, and half of it at most.
        #expect(isAbout(rest(-5), 1.99) && isAbout(rest(0), 1.99) && isAbout(rest(120), 1.99))
        #expect(isAbout(rest(240), 0.99) && isAbout(rest(2400), 0.09))
        #expect(isAbout(rest(12_000), 0.01) && isAbout(rest(1e6), 0.01))
        // A slow disk does not put it off for longer than an interval.
        let slow = ExpirySweeper.rest(
            after: .seconds(2), delay: .zero, interval: .seconds(60))
        #expect(slow == .seconds(60))
    }

    @Test func `a writer that never pauses does not keep it from its work`() async throws {
        let store = try open(every: .milliseconds(20))
        try await store.write { tx in
            for number in 0..<2000 {
                try tx.set("code", for: number, in: codes, expiring: .after(.milliseconds(50)))
            }
        }
        let writer = Task {
            var count = 0
            while !Task.isCancelled {
                try await store.set("code", for: 3000, in: codes)
                count += 1
            }
            return count
        }
        clock.advance(by: 0.06)
        #expect(try await comes { try rowCount(store) <= 1 })
        writer.cancel()
        _ = await writer.result
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
