#if COFFER_TSAN
import Foundation
import Testing

@testable import Coffer

/// As in the library; see the type there.
typealias Mutex<Value> = Coffer.Mutex<Value>

/// The sanitizer must see the races that it is there for, and nothing else. It ends a process in
/// which it saw a race with exit code 66.
@Suite(.againstHanging, .onOwnThreads) struct ThreadSanitizerTests {
    private final class Counter: @unchecked Sendable {
        // @unchecked: deliberately wrong.
        var count = 0
    }

    /// Runs the work in two threads at the same time.
    private static func twice(_ work: @escaping @Sendable () -> Void) {
        let isDone = DispatchSemaphore(value: 0)
        for _ in 0..<2 {
            Thread.detachNewThread {
                for _ in 0..<1000 { work() }
                isDone.signal()
            }
        }
        for _ in 0..<2 { isDone.wait() }
    }

    @Test func `a race ends the process with the sanitizer's exit code`() async {
        await #expect(processExitsWith: .exitCode(66)) {
            let counter = Counter()
            Self.twice { counter.count += 1 }
            exit(0)
        }
    }

    @Test func `a race on a value that belongs to one body is found in the library too`() async {
        await #expect(processExitsWith: .exitCode(66)) {
            let folder = try TemporaryFolder()
            let connection = try Connection(path: folder.path(), key: .numbered(1))
            let scope = TransactionScope(
                connection, stop: StopSignal(), cancellation: nil, isWholeRun: false)
            let shared = Counted(scope: scope)
            Self.twice { shared.scope.end() }
            exit(0)
        }
    }

    private final class Counted: @unchecked Sendable {
        // @unchecked: deliberately wrong.
        let scope: TransactionScope

        init(scope: TransactionScope) {
            self.scope = scope
        }
    }

    @Test func `a counter under the mutex is not a race`() async {
        await #expect(processExitsWith: .success) {
            let count = Mutex(0)
            Self.twice { count.withLock { $0 += 1 } }
            exit(count.withLock { $0 } == 2000 ? 0 : 1)
        }
    }
}
#endif
