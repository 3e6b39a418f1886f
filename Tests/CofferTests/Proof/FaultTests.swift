import CSQLCipher
import Testing
import Workload

@testable import Coffer

/// A disk that fails: 1 000 faults by default, 100 000 in a long run.
@Suite(.againstHanging, .onOwnThreads) struct FaultTests {
    private static let runs: [(Keeping, UInt64)] = Keeping.all.flatMap { keeping in
        (1...tryCount(5, long: 500)).map { (keeping, UInt64($0)) }
    }

    @Test(arguments: runs)
    func `a disk that fails costs no acknowledged write and keeps no failed one`(
        keeping: Keeping, seed: UInt64
    ) async throws {
        let harness = try FaultHarness(keeping, seed: seed)
        let tally = try await harness.run(faultCount: 50)
        try tally.expectNothingLost("I/O faults")
        #expect(harness.failureCount > 25, "the faults have disturbed too little")
    }

    private typealias Failing = (
        FaultDisk.Kinds, code: Int32, Configuration.JournalMode, expected: StoreError.Code
    )

    private static let failing: [Failing] = [
        (.write, 0, .wal, .io), (.write, SQLITE_FULL, .wal, .full), (.sync, 0, .wal, .io),
        (.shm, 0, .wal, .io), (.write, 0, .delete, .io), (.write, SQLITE_FULL, .delete, .full),
        (.sync, 0, .delete, .io), (.delete, 0, .delete, .io), (.lock, 0, .delete, .io),
        (.open, 0, .delete, .io),
    ]

    @Test(arguments: failing)
    func `a failed operation is reported as what it is and rolled back, and the store goes on`(
        kinds: FaultDisk.Kinds, code: Int32, mode: Configuration.JournalMode,
        expected: StoreError.Code
    ) throws {
        let folder = try TemporaryFolder()
        let disk = try FaultDisk()
        var configuration = Configuration.testing(mode)
        configuration.vfs = disk.name
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: configuration)
        try store.write { tx in try Ledger.create(tx) }
        disk.arm(kinds, code: code)
        expect(expected) {
            try store.write { tx in try Ledger.post(Ledger.Entry(worker: 0, number: 1), tx) }
        }
        #expect(disk.struckCount == 1)
        let contents = try store.read { tx in try Ledger.contents(tx) }
        #expect(contents.entries.isEmpty)
        #expect(contents.problems.isEmpty)
        try store.write { tx in try Ledger.post(Ledger.Entry(worker: 0, number: 1), tx) }
        try store.close()
    }

    @Test(arguments: Keeping.all)
    func `the harness fails when an error is taken for success`(keeping: Keeping) async throws {
        let harness = try FaultHarness(keeping, seed: 1, .acknowledgesFailures)
        let tally = try await harness.run(faultCount: 50)
        #expect(tally.problems.contains { $0.contains("acknowledged and lost") })
    }

    @Test(arguments: Keeping.all)
    func `the harness fails on a disk that reports writes that it has not done`(
        keeping: Keeping
    )
        async throws
    {
        let harness = try FaultHarness(keeping, seed: 1, .diskLies)
        let tally = try await harness.run(faultCount: 50)
        #expect(!tally.problems.isEmpty)
    }
}
