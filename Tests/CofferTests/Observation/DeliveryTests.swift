import Synchronization
import Testing

@testable import Coffer

/// Values that an actor gets.
@Suite(.againstHanging, .onOwnThreads) struct DeliveryTests {
    private static func count(_ tx: borrowing some Reading & ~Copyable) throws -> Int {
        try tx.scalar("SELECT count(*) FROM t", as: Int.self) ?? -1
    }

    /// The values that come on the main actor, in order.
    @MainActor private final class Screen {
        private(set) var values: [Int] = []
        private(set) var errors: [any Error] = []
        var token: ObservationToken?

        func show(_ value: Int) {
            MainActor.assertIsolated()
            values.append(value)
        }

        func show(_ error: any Error) { errors.append(error) }

        func open(_ observed: ObservedValues<Int>) {
            token = observed.start { [weak self] error in
                self?.show(error)
            } onChange: { [weak self] value in
                self?.show(value)
            }
        }

        /// Waits for this number of values.
        func has(_ count: Int) async throws {
            try await yieldWhile { values.count < count && errors.isEmpty }
        }
    }

    @Test @MainActor
    func `values come on the main actor, now and after each commit that changes them`()
        async throws
    {
        let fixture = try ObservationFixture()
        let screen = Screen()
        screen.token = fixture.store.observe { tx in
            try Self.count(tx)
        } onError: { error in
            Issue.record(error)
        } onChange: { count in
            screen.show(count)
        }
        try await screen.has(1)
        for number in 1...3 {
            try fixture.run("INSERT INTO t(v) VALUES (1)", "INSERT INTO other VALUES (1)")
            try await screen.has(1 + number)
        }
        #expect(screen.values == [0, 1, 2, 3])
        screen.token = fixture.store.observe(on: MainActor.shared) { tx in
            try Self.count(tx)
        } onError: { error in
            Issue.record(error)
        } onChange: { count in
            screen.show(count)
        }
        try await screen.has(5)
        #expect(screen.values == [0, 1, 2, 3, 3])
    }

    private actor Cache {
        private(set) var values: [Int] = []
        private var token: ObservationToken?

        func follow(_ store: Store) {
            token = store.observe { tx in
                try DeliveryTests.count(tx)
            } onError: { error in
                Issue.record(error)
            } onChange: { [self] count in
                values.append(count)
            }
        }

        func end() async {
            token?.cancel()
            await token?.task.value
        }
    }

    @Test func `values come on the actor that asks for them`() async throws {
        let fixture = try ObservationFixture()
        let cache = Cache()
        await cache.follow(fixture.store)
        try await yieldWhile { await cache.values.count < 1 }
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        try await yieldWhile { await cache.values.count < 2 }
        await cache.end()
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        #expect(await cache.values == [0, 1])
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test @MainActor func `a busy actor gets the last value`() async throws {
        let fixture = try ObservationFixture()
        let screen = Screen()
        screen.open(fixture.store.observe { tx in try Self.count(tx) })
        try await screen.has(1)
        for _ in 0..<20 { try fixture.run("INSERT INTO t(v) VALUES (1)") }
        try await yieldWhile { screen.values.last != 20 }
        #expect(screen.values.count <= 3 && screen.values.first == 0)
    }

    @Test @MainActor func `no value comes after cancel, even if it was on its way`() async throws {
        let fixture = try ObservationFixture()
        let screen = Screen()
        for way in ["cancelled", "released"] {
            let compared = Counter()
            screen.open(
                fixture.store.observe { tx in try Self.count(tx) }.removeDuplicates { _, _ in
                    compared.add()
                    return false
                })
            let known = screen.values.count + 1
            try await screen.has(known)
            try fixture.run("INSERT INTO t(v) VALUES (1)")
            // The loop has its value, and waits for the main actor, which this test holds.
            try waitUntil { compared.count == 1 }
            let task = screen.token?.task
            if way == "cancelled" { screen.token?.cancel() } else { screen.token = nil }
            await task?.value
            #expect(screen.values.count == known && screen.errors.isEmpty, "\(way)")
            #expect(fixture.store.core.observation.observerCount == 0)
        }
    }

    @Test @MainActor func `a value may cancel the observation`() async throws {
        let fixture = try ObservationFixture()
        let screen = Screen()
        screen.token = fixture.store.observe { tx in
            try Self.count(tx)
        } onError: { error in
            screen.show(error)
        } onChange: { count in
            screen.show(count)
            if count == 1 { screen.token?.cancel() }
        }
        try await screen.has(1)
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        await screen.token?.task.value
        #expect(screen.values == [0, 1] && screen.errors.isEmpty)
    }

    @Test @MainActor func `an error of the read ends the observation, and comes once`()
        async throws
    {
        let fixture = try ObservationFixture()
        let screen = Screen()
        screen.open(
            fixture.store.observe { tx in
                let count = try Self.count(tx)
                if count == 1 { throw Undo() }
                return count
            })
        try await screen.has(1)
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        await screen.token?.task.value
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        #expect(screen.values == [0])
        #expect(screen.errors.count == 1 && screen.errors.first is Undo)
        #expect(fixture.store.core.observation.observerCount == 0)
    }

    @Test @MainActor func `closing the store ends the observation`() async throws {
        let fixture = try ObservationFixture()
        let screen = Screen()
        screen.open(fixture.store.observe { tx in try Self.count(tx) })
        try await screen.has(1)
        try await fixture.store.close()
        await screen.token?.task.value
        #expect(screen.values == [0])
        #expect((screen.errors.first as? StoreError)?.code == .closed)
    }

    @Test func `duplicates come if the program asks for them`() async throws {
        let fixture = try ObservationFixture()
        let values = fixture.store.observe { tx in try Self.count(tx) }
        let parity = values.removeDuplicates { $0 % 2 == $1 % 2 }.makeAsyncIterator()
        let all = values.includingDuplicates().makeAsyncIterator()
        let plain = values.makeAsyncIterator()
        for loop in [parity, all, plain] { #expect(try await loop.next() == 0) }
        try fixture.run("UPDATE t SET v = 1")
        #expect(try await all.next() == 0)
        try fixture.run("INSERT INTO t(v) VALUES (1), (2)")
        #expect(try await all.next() == 2)
        #expect(try await plain.next() == 2)
        let next = Task { try await parity.next() }
        try fixture.run("INSERT INTO t(v) VALUES (1)")
        #expect(try await next.value == 3)
    }
}
