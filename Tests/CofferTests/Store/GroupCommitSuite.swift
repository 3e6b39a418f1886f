import Foundation

@testable import Coffer

/// How each of some writes ended that waited together, and how many commits there were.
struct GroupOutcome {
    var results: [Result<Void, any Error>] = []
    var commitCount = 0

    /// The code of each error, `nil` where there was none.
    var codes: [StoreError.Code?] {
        results.map { result in
            guard case .failure(let error) = result else { return nil }
            return (error as? StoreError)?.code
        }
    }
}

/// Tests of writes that wait together and share one commit.
protocol GroupCommitSuite: StoreSuite {}

extension GroupCommitSuite {
    typealias Body = @Sendable (inout WriteTransaction) throws -> Void

    /// Lets the bodies wait in line behind a write that does not share, then lets them go.
    func run(
        _ store: Store, isSynchronous: (Int) -> Bool = { _ in false }, _ bodies: [Body]
    ) async throws -> GroupOutcome {
        let hold = Hold()
        let first = Task { try await store.write(mode: .deferred) { _ in hold.stay() } }
        await hold.isEntered()
        var tasks: [Task<Void, any Error>] = []
        for (index, body) in bodies.enumerated() {
            tasks.append(
                isSynchronous(index)
                    ? onThread { try store.write(body) }
                    : Task { try await store.write(body) })
            while store.waitingWriteCount <= index { try await Task.sleep(for: .microseconds(50)) }
        }
        hold.release()
        try await first.value
        let before = store.statistics.writes.commitCount
        var outcome = GroupOutcome()
        for task in tasks { outcome.results.append(await task.result) }
        outcome.commitCount = store.statistics.writes.commitCount - before
        return outcome
    }

    static func insert(_ number: Int) -> Body {
        { tx in try tx.execute("INSERT INTO t VALUES (\(number))") }
    }

    static func fail(_ number: Int) -> Body {
        { tx in
            try tx.execute("INSERT INTO t VALUES (\(number))")
            throw Undo()
        }
    }
}
