import CofferTestKit
import Testing
import Workload

@testable import Coffer

/// At most one value in an interval, by a clock that the test moves.
@Suite(.againstHanging, .onOwnThreads) struct ThrottleTests {
    private let fixture: ObservationFixture
    private let clock = ManualClock()
    private let fetches = Counter()
    private let interval = Duration.seconds(10)

    init() throws { fixture = try ObservationFixture() }

    private func values() -> ObservedValues<Int> {
        let fetches = fetches
        return fixture.store.observe { tx in
            fetches.add()
            return try tx.scalar("SELECT count(*) FROM t", as: Int.self) ?? -1
        }.throttle(for: interval, clock: clock)
    }

    /// A loop that each task leaves before the next one uses it, which the compiler cannot see.
    private struct OneAtATime: @unchecked Sendable {
        let loop: ObservedValues<Int>.Iterator
    }

    /// What the loop gives; cancels a loop that waits for a value that never comes.
    private func value(_ next: Task<Int?, any Error>) async throws -> Int? {
        let limit = Task {
            try await Task.sleep(for: .seconds(60))
            next.cancel()
        }
        defer { limit.cancel() }
        return try await next.value
    }

    private func insert() throws { try fixture.run("INSERT INTO t(v) VALUES (1)") }

    @Test func `the first value comes at once, and commits of an interval lead to one at its end`()
        async throws
    {
        let loop = OneAtATime(loop: values().makeAsyncIterator())
        #expect(try await loop.loop.next() == 0)
        var expected = 0
        for round in 1...20 {
            try insert()
            let next = Task { try await loop.loop.next() }
            try #require(await comes { clock.sleeperCount > 0 })
            clock.advance(by: interval - .nanoseconds(1))
            for _ in 0..<3 { try insert() }
            #expect(clock.sleeperCount == 1 && fetches.count == round)
            clock.advance(by: .nanoseconds(1))
            expected += 4
            let number = try await value(next)
            #expect(number == expected)
            #expect(fetches.count == round + 1)
        }
    }

    @Test func `after a quiet interval the next value comes at once`() async throws {
        let loop = values().makeAsyncIterator()
        #expect(try await loop.next() == 0)
        clock.advance(by: interval)
        try insert()
        #expect(try await loop.next() == 1)
        // A fetch whose value is not delivered begins an interval, too.
        clock.advance(by: interval)
        try fixture.run("UPDATE t SET v = v + 1")
        let next = Task { try await loop.next() }
        try #require(await comes { fetches.count >= 3 })
        try insert()
        try #require(await comes { clock.sleeperCount > 0 })
        clock.advance(by: interval)
        let number = try await value(next)
        #expect(number == 2)
        #expect(fetches.count == 4)
    }

    @Test func `the last value always comes`() async throws {
        var random = SeededGenerator(for: #function)
        let loop = values().makeAsyncIterator()
        let end = isLongRun ? 2_000 : 200
        let reader = Task {
            var seen: [Int] = []
            while let value = try await loop.next() {
                seen.append(value)
                if value == end { break }
            }
            return seen
        }
        for _ in 0..<end {
            try insert()
            if Int.random(in: 0..<3, using: &random) == 0 {
                clock.advance(by: interval * Int.random(in: 1...4, using: &random) / 3)
            }
            if Int.random(in: 0..<5, using: &random) == 0 { await Task.yield() }
        }
        // Time goes on, and nothing more is committed.
        let isOver = Counter()
        let ticks = Task {
            while isOver.count == 0 {
                clock.advance(by: interval)
                await Task.yield()
            }
        }
        let limit = Task {
            try await Task.sleep(for: .seconds(60))
            reader.cancel()
        }
        let seen = await reader.result
        isOver.add()
        limit.cancel()
        await ticks.value
        let values = try seen.get()
        #expect(values.last == end && values == values.sorted())
        #expect(Set(values).count == values.count)
    }

    @Test(arguments: ["close", "cancel"])
    func `a pause ends when the store closes, and when the task is cancelled`(
        way: String
    ) async throws {
        let loop = values().makeAsyncIterator()
        #expect(try await loop.next() == 0)
        try insert()
        let ended = Counter()
        let next = Task {
            defer { ended.add() }
            return try await loop.next()
        }
        try #require(await comes { clock.sleeperCount > 0 })
        if way == "close" { try await fixture.store.close() } else { next.cancel() }
        #expect(await comes { ended.count == 1 })
        // Ends the test, too, if the pause goes on.
        clock.advance(by: interval)
        switch await next.result {
        case .success: Issue.record("a value came")
        case .failure(let error):
            #expect((error as? StoreError)?.code == .closed || error is CancellationError)
        }
        #expect(fetches.count == 1 && clock.sleeperCount == 0)
    }
}
