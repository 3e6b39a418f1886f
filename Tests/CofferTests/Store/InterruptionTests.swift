import Foundation
import Synchronization
import Testing

@testable import Coffer

/// Synchronous reads and writes that another thread ends.
@Suite(.againstHanging, .onOwnThreads) struct InterruptionTests {
    private let folder: TemporaryFolder
    private let store: Store

    init() throws {
        folder = try TemporaryFolder()
        store = try Store(path: folder.path(), key: .numbered(7), configuration: .testing())
        try store.write { tx in try tx.execute("CREATE TABLE t (n INTEGER)") }
    }

    private static let endless: SQL =
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

    private final class Flag: Sendable {
        private let state = Mutex(false)
        var isSet: Bool { state.withLock { $0 } }
        func set() { state.withLock { $0 = true } }
    }

    /// Runs a synchronous call on a thread of its own.
    private static func onThread<T: Sendable>(
        _ body: @escaping @Sendable () throws -> T
    ) async -> Result<T, any Error> {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: Result { try body() }) }
        }
    }

    private func code<T>(_ result: Result<T, any Error>) -> StoreError.Code? {
        guard case .failure(let error) = result else { return nil }
        return (error as? StoreError)?.code
    }

    @Test func `a running query ends, and the store goes on`() async throws {
        let (interruption, hold) = (Interruption(), Hold())
        async let result = Self.onThread { [store] in
            try store.read(interruptedBy: interruption) { tx in
                hold.stay()
                return try tx.rows(Self.endless)
            }
        }
        await hold.isEntered()
        hold.release()
        interruption.interrupt()
        #expect(code(await result) == .cancelled)
        #expect(interruption.isInterrupted)
        #expect(try await store.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 0)
    }

    @Test func `an interrupted write has written nothing`() async throws {
        let (interruption, hold) = (Interruption(), Hold())
        async let result = Self.onThread { [store] in
            try store.write(interruptedBy: interruption) { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                try tx.execute("INSERT INTO t VALUES (2)")
            }
        }
        await hold.isEntered()
        interruption.interrupt()
        hold.release()
        #expect(code(await result) == .cancelled)
        #expect(try await store.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 0)
    }

    @Test func `a call that waits for its turn ends, and its body never runs`() async throws {
        let (interruption, hold) = (Interruption(), Hold())
        async let first = Self.onThread { [store] in try store.write { _ in hold.stay() } }
        await hold.isEntered()
        let began = Flag()
        async let second = Self.onThread { [store] in
            try store.write(interruptedBy: interruption) { _ in
                began.set()
            }
        }
        try await yieldWhile { store.waitingWriteCount < 1 }
        interruption.interrupt()
        #expect(code(await second) == .cancelled)
        hold.release()
        _ = await first
        #expect(!began.isSet)
    }

    @Test func `one interruption ends every call that has it, also later ones`() async throws {
        let interruption = Interruption()
        let holds = (0..<3).map { _ in Hold() }
        let calls = holds.map { hold in
            Task { [store] in
                await Self.onThread {
                    try store.read(interruptedBy: interruption) { tx in
                        hold.stay()
                        _ = try tx.rows(Self.endless)
                    }
                }
            }
        }
        for hold in holds {
            await hold.isEntered()
            hold.release()
        }
        interruption.interrupt()
        var codes: [StoreError.Code?] = []
        for call in calls { codes.append(code(await call.value)) }
        #expect(codes == [.cancelled, .cancelled, .cancelled])
        for _ in 0..<2 {
            let later = await Self.onThread { [store] in
                try store.write(interruptedBy: interruption) { _ in }
            }
            #expect(code(later) == .cancelled)
        }
    }

    @Test func `a body that ignores the interrupt has done nothing either`() async throws {
        let (interruption, hold) = (Interruption(), Hold())
        async let result = Self.onThread { [store] in
            try store.write(interruptedBy: interruption) { tx in
                try tx.execute("INSERT INTO t VALUES (1)")
                hold.stay()
                return (try? tx.rows(Self.endless))?.count ?? 0
            }
        }
        await hold.isEntered()
        hold.release()
        interruption.interrupt()
        #expect(code(await result) == .cancelled)
        #expect(try await store.read { tx in try tx.scalar("SELECT count(*) FROM t") } == 0)
    }

    /// An interrupt that comes between the check of a verb and the first step of its statement.
    @Test func `no interrupt is lost, whenever it comes`() async throws {
        for round in 0..<200 {
            let interruption = Interruption()
            async let result = Self.onThread { [store] in
                try store.read(interruptedBy: interruption) { tx in try tx.rows(Self.endless) }
            }
            for _ in 0..<round * 50 { _ = interruption.isInterrupted }
            interruption.interrupt()
            #expect(code(await result) == .cancelled)
        }
    }

    @Test func `a call that nobody interrupts returns its value`() throws {
        let interruption = Interruption()
        #expect(try store.write(interruptedBy: interruption) { _ in 1 } == 1)
        #expect(try store.read(interruptedBy: interruption) { _ in 2 } == 2)
        try store.close()
        expect(.closed) { try store.read(interruptedBy: interruption) { _ in } }
    }
}
