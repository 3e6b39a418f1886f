import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct ParallelWorkTests {
    /// Where the work ran, and whether it was cancelled before its end.
    private struct Seen {
        let isOfCaller: Bool
        let isCancelled: Bool
    }

    private static func work(
        _ wait: @escaping @Sendable (Cancellation) -> Void = { _ in }
    ) -> ParallelWork<Seen> {
        let caller = ObjectIdentifier(Thread.current)
        return ParallelWork { cancellation in
            wait(cancellation)
            return Seen(
                isOfCaller: ObjectIdentifier(Thread.current) == caller,
                isCancelled: cancellation.isCancelled)
        }
    }

    @Test func `work that has begun runs on another thread`() {
        let hasBegun = DispatchSemaphore(value: 0)
        let work = Self.work { _ in hasBegun.signal() }
        work.begin()
        hasBegun.wait()
        let seen = work.output(nil)
        #expect(!seen.isOfCaller && !seen.isCancelled)
        work.abandon()
    }

    @Test func `the caller does the work that no thread has begun`() {
        for begins in [false, true] {
            let late = Shared<(@Sendable () -> Void)?>(nil)
            let work = Self.work()
            if begins { work.begin { late.value = $0 } }
            #expect(work.output(nil).isOfCaller)
            // A thread that comes too late does nothing.
            late.value?()
            work.abandon()
        }
    }

    @Test func `a cancellation of the caller reaches the work on either thread`() {
        for begins in [false, true] {
            let cancellation = Cancellation()
            let hasBegun = DispatchSemaphore(value: 0)
            let work = Self.work { own in
                hasBegun.signal()
                if !begins { cancellation.cancel() }
                while !own.isCancelled { usleep(1000) }
            }
            if begins {
                work.begin()
                hasBegun.wait()
                Thread.detachNewThread { cancellation.cancel() }
            }
            let seen = work.output(cancellation)
            #expect(seen.isCancelled && seen.isOfCaller == !begins)
        }
    }

    @Test func `abandoned work is cancelled, and has ended when the call returns`() {
        let (hasBegun, hasEnded) = (DispatchSemaphore(value: 0), Shared(false))
        let work = Self.work { own in
            hasBegun.signal()
            while !own.isCancelled { usleep(1000) }
            hasEnded.value = true
        }
        work.begin()
        hasBegun.wait()
        work.abandon()
        #expect(hasEnded.value)
        // A second time it has nothing to do.
        work.abandon()
    }

    @Test func `nothing keeps what the work uses after its end`() {
        final class Used: Sendable {}
        for begins in [false, true] {
            let hasBegun = DispatchSemaphore(value: 0)
            var used: Used? = Used()
            weak let kept = used
            let work = ParallelWork { [used] _ in
                hasBegun.signal()
                return used == nil
            }
            used = nil
            if begins {
                work.begin()
                hasBegun.wait()
            }
            #expect(work.hasBegun == begins)
            #expect(!work.output(nil))
            #expect(kept == nil)
        }
    }

    @Test func `abandoned work that has not begun never runs`() {
        let late = Shared<(@Sendable () -> Void)?>(nil)
        let hasRun = Shared(false)
        let work = Self.work { _ in hasRun.value = true }
        work.begin { late.value = $0 }
        work.abandon()
        late.value?()
        #expect(!hasRun.value)
    }
}
