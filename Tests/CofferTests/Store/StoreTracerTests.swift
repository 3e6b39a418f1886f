import Foundation
import Synchronization
import Testing

@testable import Coffer

/// The spans that a tracer hears of.
@Suite(.againstHanging, .onOwnThreads) struct StoreTracerTests {
    /// Keeps what it hears, in order.
    private final class Recorder: StoreTracer {
        @TaskLocal static var caller = "nobody"

        struct Span: TransactionSpan {
            let recorder: Recorder
            let name: String

            func bodyBegins() { recorder.add("\(name) body") }
            func end(_ error: (any Error)?) {
                let code = (error as? StoreError)?.code.description
                recorder.add("\(name) \(code ?? error.map { "\($0)" } ?? "done")")
            }
        }

        private let lines = Mutex<[String]>([])
        private let transactions = Mutex<[TracedTransaction]>([])

        var heard: [String] { lines.withLock { $0 } }
        var begun: [TracedTransaction] { transactions.withLock { $0 } }

        func begin(_ transaction: TracedTransaction) -> any TransactionSpan {
            transactions.withLock { $0.append(transaction) }
            add("\(transaction.kind) by \(Self.caller)")
            return Span(recorder: self, name: transaction.kind.rawValue)
        }

        fileprivate func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private struct Refusal: Error {}

    private let folder: TemporaryFolder
    private let recorder = Recorder()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() throws -> Store {
        var configuration = Configuration.testing()
        configuration.tracer = recorder
        return try Store(path: folder.path(), key: .numbered(1), configuration: configuration)
    }

    @Test func `a span begins in the caller's task and ends with the call`() async throws {
        let store = try open()
        try await Recorder.$caller.withValue("a task") {
            try await store.write { tx in try tx.execute("CREATE TABLE t(x)") }
            #expect(try await store.read { tx in try tx.rows("SELECT * FROM t").count } == 0)
        }
        try Recorder.$caller.withValue("a thread") {
            try store.write { _ in }
            #expect(try store.read { _ in 1 } == 1)
        }
        #expect(
            recorder.heard == [
                "write by a task", "write body", "write done",
                "read by a task", "read body", "read done",
                "write by a thread", "write body", "write done",
                "read by a thread", "read body", "read done",
            ])
        let write = try #require(recorder.begun.first)
        #expect(write.fileID == #fileID)
        #expect(write.line != nil)
        #expect(write.store == URL(filePath: folder.path()).lastPathComponent)
        #expect(recorder.begun[1].fileID == nil)
    }

    @Test func `a call inside a body belongs to the span of that body`() throws {
        let store = try open()
        try store.write { _ in
            try store.write { _ in }
            try store.read { _ in }
        }
        #expect(recorder.heard == ["write by nobody", "write body", "write done"])
    }

    @Test func `an error ends the span, with and without a body`() async throws {
        let store = try open()
        await #expect(throws: Refusal.self) { try await store.write { _ in throw Refusal() } }
        #expect(throws: Refusal.self) { try store.read { _ in throw Refusal() } }
        try await store.close()
        await #expect(throws: StoreError.self) { try await store.read { _ in } }
        #expect(
            recorder.heard == [
                "write by nobody", "write body", "write Refusal()",
                "read by nobody", "read body", "read Refusal()",
                "read by nobody", "read closed",
            ])
    }

    @Test func `a call that can be interrupted has a span too`() throws {
        let store = try open()
        try store.write(interruptedBy: Interruption()) { _ in }
        try store.read(interruptedBy: Interruption()) { _ in }
        #expect(recorder.begun.map(\.kind) == [.write, .read])
    }
}
