import Testing
import Workload

@testable import Coffer

/// Coffer's own threads: how many there are, which caller gets one, and when they end.
@Suite(.againstHanging, .onOwnThreads) struct WorkThreadsTests {
    private func make(
        maximumRunningCount: Int, maximumThreadCount: Int,
        idleDuration: Duration = .milliseconds(20)
    ) -> WorkThreads {
        WorkThreads(
            maximumRunningCount: maximumRunningCount, maximumThreadCount: maximumThreadCount,
            idleDuration: idleDuration)
    }

    /// A body that runs as a store's read does.
    private func body(
        _ gate: Gate, on threads: WorkThreads, timeout: Duration? = nil,
        _ work: @escaping @Sendable () throws -> Void = {}
    ) -> Task<Void, any Error> {
        Task {
            try await gate.admitted(timeout: timeout, for: "the test", on: threads) { _, done in
                let result = Result { try work() }
                WorkThread.willEnd()
                gate.leave()
                done(result)
            }
        }
    }

    /// Waits at a gate in a body, and leaves it again.
    private static func pass(_ gate: Gate, _ work: () -> Void = {}) throws {
        try gate.wait(timeout: nil, for: "the test")
        work()
        gate.leave()
    }

    @Test func `threads without work end, and new ones begin`() async throws {
        let threads = make(maximumRunningCount: 8, maximumThreadCount: 8)
        let (gate, hold) = (Gate(permitCount: 8), Hold())
        for _ in 0..<2 {
            let bodies = (0..<8).map { _ in body(gate, on: threads) { hold.stay() } }
            for _ in bodies { await hold.isEntered() }
            #expect(threads.threadCount == 8)
            for _ in bodies { hold.release() }
            for body in bodies { try await body.value }
            #expect(await comes { threads.threadCount == 0 })
            #expect(threads.runningCount == 0)
        }
    }

    @Test func `a body without a slot to run waits in the queue until cancelled or late`()
        async throws
    {
        let threads = make(maximumRunningCount: 2, maximumThreadCount: 8)
        let (gate, hold) = (Gate(permitCount: 8), Hold())
        let running = (0..<2).map { _ in body(gate, on: threads) { hold.stay() } }
        for _ in running { await hold.isEntered() }
        let cancelled = body(gate, on: threads) { Issue.record("was cancelled before") }
        let late = body(gate, on: threads, timeout: .milliseconds(1)) {
            Issue.record("was too late")
        }
        await #expect {
            try await late.value
        } throws: { error in
            let error = error as? StoreError
            return error?.code == .busy && error?.message.contains("a thread") == true
        }
        let next = body(gate, on: threads)
        #expect(await comes { gate.waitingCount == 2 })
        cancelled.cancel()
        #expect(await code(cancelled) == .cancelled)
        // The gate has room, so a caller that needs no other thread goes first.
        try Self.pass(gate)
        #expect(gate.waitingCount == 1)
        for _ in running { hold.release() }
        for body in running + [next] { try await body.value }
    }

    @Test func `a body that waits at a gate hands its slot on`() async throws {
        let threads = make(maximumRunningCount: 1, maximumThreadCount: 2)
        let (gate, other) = (Gate(permitCount: 8), Gate(permitCount: 1))
        #expect(try other.enterAtOnce())
        let waiting = body(gate, on: threads) { try Self.pass(other) }
        #expect(await comes { other.waitingCount == 1 && threads.runningCount == 0 })
        #expect(await code(body(gate, on: threads, timeout: .seconds(60))) == nil)
        other.leave()
        try await waiting.value
        #expect(await comes { threads.runningCount == 0 && threads.threadCount == 0 })
    }

    @Test func `a body that waits at a gate hands its slot on to one that waited for it`()
        async throws
    {
        let threads = make(maximumRunningCount: 1, maximumThreadCount: 2)
        let (gate, other, hold) = (Gate(permitCount: 8), Gate(permitCount: 1), Hold())
        #expect(try other.enterAtOnce())
        let waiting = body(gate, on: threads) {
            hold.stay()
            try Self.pass(other)
        }
        await hold.isEntered()
        let next = body(gate, on: threads, timeout: .seconds(60))
        #expect(await comes { gate.waitingCount == 1 })
        hold.release()
        #expect(await code(next) == nil)
        other.leave()
        try await waiting.value
    }

    @Test func `a body without a thread does not keep a slot from one that has a thread`()
        async throws
    {
        let threads = make(maximumRunningCount: 1, maximumThreadCount: 1)
        let (gate, other) = (Gate(permitCount: 8), Gate(permitCount: 1))
        let order = Shared<[Int]>([])
        #expect(try other.enterAtOnce())
        let first = body(other, on: threads) { order.update { $0.append(1) } }
        #expect(await comes { other.waitingCount == 1 })
        let second = body(gate, on: threads) {
            try Self.pass(other) { order.update { $0.append(2) } }
        }
        #expect(await comes { other.waitingCount == 2 })
        other.leave()
        try await second.value
        try await first.value
        #expect(order.value == [2, 1])
    }

    @Test func `bodies that follow each other at a gate need one thread`() async throws {
        let threads = make(
            maximumRunningCount: 8, maximumThreadCount: 8, idleDuration: .seconds(60))
        let (gate, hold) = (Gate(permitCount: 1), Hold())
        let first = body(gate, on: threads) { hold.stay() }
        await hold.isEntered()
        let others = (0..<20).map { _ in body(gate, on: threads) }
        #expect(await comes { gate.waitingCount == 20 })
        hold.release()
        for body in [first] + others { try await body.value }
        #expect(threads.threadCount == 1)
    }

    @Test func `a body that passes its slot on hands over its own thread, before others get it`()
        async throws
    {
        let threads = make(maximumRunningCount: 1, maximumThreadCount: 1)
        let (gate, other) = (Gate(permitCount: 1), Gate(permitCount: 1))
        let (hold, isPassed) = (Hold(), Shared(false))
        gate.enter(
            Gate.Ticket(on: threads) {
                hold.stay()
                WorkThread.willEnd()
                isPassed.value = gate.pass()
            } onRefusal: { _ in
            })
        await hold.isEntered()
        let first = body(other, on: threads)
        #expect(await comes { other.waitingCount == 1 })
        let isOver = Shared(false)
        gate.enter(
            Gate.Ticket(on: threads, isSharing: true) {
                isOver.value = true
                gate.leave()
            } onRefusal: { _ in
            })
        hold.release()
        try await first.value
        #expect(isPassed.value)
        #expect(isOver.value)
    }

    @Test func `a system that refuses threads is asked again`() async throws {
        let refusals = Shared(0)
        let threads = WorkThreads(
            maximumRunningCount: 8, maximumThreadCount: 8, idleDuration: .milliseconds(20)
        ) { thread in
            refusals.update { $0 += 1 }
            return refusals.value > 3 && thread.begin()
        }
        let gate = Gate(permitCount: 8)
        let bodies = (0..<4).map { _ in body(gate, on: threads) }
        for body in bodies { try await body.value }
        #expect(refusals.value > 3)
    }

    @Test func `bodies within bodies all end, however few threads there are`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("WorkThreadsTests: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let threads = make(maximumRunningCount: 2, maximumThreadCount: 3)
        let gates = (0..<5).map { _ in Gate(permitCount: 1) }
        let insideCounts = Shared([0, 0, 0, 0, 0])
        // Always in the same order, so that there is no cycle of waiting bodies.
        let bodies = (0..<400).map { _ in
            let path = gates.indices.filter { _ in Bool.random(using: &random) }
            let first = path.first ?? 0
            return body(gates[first], on: threads) {
                @Sendable func enter(_ rest: ArraySlice<Int>) throws {
                    guard let index = rest.first else { return }
                    try gates[index].wait(timeout: nil, for: "the test")
                    insideCounts.update { $0[index] += 1 }
                    #expect(insideCounts.value[index] == 1)
                    try enter(rest.dropFirst())
                    insideCounts.update { $0[index] -= 1 }
                    gates[index].leave()
                }
                try enter(path.dropFirst())
            }
        }
        for body in bodies { try await body.value }
        #expect(await comes { threads.threadCount == 0 })
        #expect(threads.runningCount == 0)
    }
}
