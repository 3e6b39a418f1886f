import Coffer
import Foundation

/// Tasks and threads that write to a ledger without end and report each write that returned.
public struct LedgerWriters: Sendable {
    private let store: Store
    /// For tests of tests: reports a write before it is committed.
    private let tellsEarly: Bool
    private let tell: @Sendable (Ledger.Entry) -> Void
    private let fail: @Sendable (any Error) -> Void

    private static let taskCount = 4
    private static let threadCount = 2

    public init(
        store: Store, tellsEarly: Bool, tell: @escaping @Sendable (Ledger.Entry) -> Void,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.store = store
        self.tellsEarly = tellsEarly
        self.tell = tell
        self.fail = fail
    }

    /// Starts them all and returns.
    public func start() throws {
        let contents = try store.read { tx in try Ledger.contents(tx) }
        for problem in contents.problems { fail(WorkloadError(problem)) }
        for worker in 0..<Self.taskCount + Self.threadCount {
            let first = contents.count(of: worker) + 1
            if worker < Self.taskCount {
                Task.detached { await runTask(worker, from: first) }
            } else {
                Thread.detachNewThread { runThread(worker, from: first) }
            }
        }
    }

    private func runTask(_ worker: Int, from first: Int) async {
        do {
            for number in first... {
                let entry = Ledger.Entry(worker: worker, number: number)
                try await store.write { tx in try post(entry, tx) }
                if !tellsEarly { tell(entry) }
            }
        } catch {
            fail(error)
        }
    }

    private func runThread(_ worker: Int, from first: Int) {
        do {
            for number in first... {
                let entry = Ledger.Entry(worker: worker, number: number)
                try store.write { tx in try post(entry, tx) }
                if !tellsEarly { tell(entry) }
            }
        } catch {
            fail(error)
        }
    }

    private func post(_ entry: Ledger.Entry, _ tx: borrowing WriteTransaction) throws {
        try Ledger.post(entry, tx)
        guard tellsEarly else { return }
        tell(entry)
        // Lets a kill come between the two, also on a machine with other things to do.
        usleep(20_000)
    }
}

/// What a workload found wrong.
public struct WorkloadError: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}
