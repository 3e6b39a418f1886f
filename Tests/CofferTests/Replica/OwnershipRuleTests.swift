import Foundation
import Synchronization
import Testing

@testable import Coffer
@testable import CofferReplica

@Suite struct OwnershipRuleTests {
    private let remote = MemoryRemote()
    private let keys = ReplicaKeys.testing()
    private let slept = Slept()
    private var access: RemoteAccess { .testing(remote) }

    private func owner(_ name: String) -> LogWriter.Owner {
        LogWriter.Owner(name: name, interval: .seconds(2))
    }

    private func writer(_ name: String) async throws -> LogWriter {
        let access = access
        let end = try await LogReader(access: access, keys: keys).end()
        return try #require(
            try await LogWriter.begin(after: end, .numbered(0), as: owner(name), access, keys))
    }

    /// Asks as an owner, with the access that has read the end.
    private func ask(
        _ name: String, while sleeping: @escaping @Sendable () async throws -> Void = {}
    ) async throws {
        let access = access
        let end = try #require(try await LogReader(access: access, keys: keys).end())
        slept.reset()
        let rule = OwnershipRule(
            access: access, owner: owner(name),
            sleep: { [slept] duration in
                slept.add(duration)
                try await sleeping()
            })
        try await rule.requireFree(end)
    }

    private final class Slept: Sendable {
        private let total = Mutex(Duration.zero)
        var duration: Duration { total.withLock(\.self) }
        func reset() { total.withLock { $0 = .zero } }
        func add(_ more: Duration) { total.withLock { $0 += more } }
    }

    @Test func `another name is refused, whatever the time, also after the owner has stopped`()
        async throws
    {
        let writer = try await writer("a")
        remote.advance(1_000_000)
        let error = await #expect(throws: StoreError.self) { try await ask("b") }
        #expect(error?.code == .ownedElsewhere)
        #expect(error?.message.contains("a replicates to it") == true)
        try await writer.close()
        let stopped = await #expect(throws: StoreError.self) { try await ask("b") }
        #expect(stopped?.message.contains("a replicated to it") == true)
        try await ask("a")
        #expect(slept.duration == .zero)
    }

    @Test func `the same name takes over after three intervals and ten seconds of silence`()
        async throws
    {
        _ = try await writer("a")
        try await ask("a")
        #expect(slept.duration == .seconds(16))
        remote.advance(17)
        try await ask("a")
        #expect(slept.duration == .zero)
    }

    @Test func `the same name is refused while the other one writes`() async throws {
        let writer = try await writer("a")
        let error = await #expect(throws: StoreError.self) {
            try await ask("a") { _ = try await writer.append(.segment, .numbered(1)) }
        }
        #expect(error?.code == .ownedElsewhere)
        #expect(error?.message.contains("of the same name is writing") == true)
    }
}
