import Testing

@testable import Coffer

extension WALBound {
    /// As after a checkpoint that could not move all of the WAL.
    fileprivate mutating func step(
        at frameCount: Int, oldestRead: () -> ContinuousClock.Instant?
    ) -> Step {
        step(at: frameCount, isKept: true, oldestRead: oldestRead)
    }
}

/// The rule for waiting when reads keep the WAL, by itself and without a store.
@Suite struct WALBoundTests {
    private let now = ContinuousClock.now
    private var past: ContinuousClock.Instant { now - .seconds(10) }

    /// A bound of 100 frames and a second one of 1 000.
    private func make(maximumAge: Duration = .seconds(600)) -> WALBound {
        var configuration = Configuration()
        configuration.checkpointPageCount = 10
        configuration.maximumWALByteCount = 100 * 4096
        configuration.maximumSnapshotWALByteCount = 1000 * 4096
        configuration.maximumSnapshotAge = maximumAge
        return WALBound(configuration, pageByteCount: 4096)
    }

    /// A bound that was asked about 100 frames and waited in vain.
    private func blocked(
        by oldestRead: ContinuousClock.Instant?, isMoved: Bool = false,
        maximumAge: Duration = .seconds(600)
    ) -> WALBound {
        var bound = make(maximumAge: maximumAge)
        bound.didWaitInVain(at: 100, since: now, isMoved: isMoved, oldestRead: oldestRead)
        return bound
    }

    @Test func `below the bound nobody waits and nobody is asked`() {
        var bound = make()
        for count in [0, 10, 99] {
            let step = bound.step(at: count) {
                Issue.record("asked")
                return nil
            }
            #expect(step == .none)
        }
        #expect(bound.step(at: 100) { nil } == .wait(WALBound.patience))
    }

    @Test func `a read that has lasted longer than a write would wait is passed over`() {
        for age in [WALBound.patience + .milliseconds(1), .seconds(10)] {
            var bound = make()
            let old = ContinuousClock.now - age
            #expect(bound.step(at: 100) { old } == .passOver)
            for count in 100..<400 { #expect(bound.step(at: count) { old } == .leave) }
            // A younger read is waited for, when the WAL has grown since.
            let young = ContinuousClock.now + .seconds(1)
            #expect(bound.step(at: 400) { young } == .none)
            #expect(bound.step(at: 501) { young } == .wait(WALBound.patience))
        }
        // At the second bound it ends, as one that was waited for.
        var bound = make()
        #expect(bound.step(at: 100) { past } == .passOver)
        guard case .end(_, .byteCount) = bound.step(at: 1000, oldestRead: { past }) else {
            Issue.record("it goes on")
            return
        }
        // A single commit may reach the second bound, where a write waits longer.
        bound = make()
        let recent = ContinuousClock.now - WALBound.patience * 2
        #expect(bound.step(at: 1000) { recent } == .wait(WALBound.lastPatience))
        bound = make()
        #expect(bound.step(at: 1000) { past } == .passOver)
    }

    @Test func `a read that keeps nothing is not passed over, however long it has lasted`() {
        var bound = make()
        #expect(bound.step(at: 100, isKept: false) { past } == .wait(WALBound.patience))
        #expect(bound.step(at: 1000, isKept: false) { past } == .wait(WALBound.lastPatience))
    }

    @Test func `a read of the store is waited for once, until it has ended`() {
        var bound = blocked(by: past)
        for count in 100..<400 { #expect(bound.step(at: count) { past } == .leave) }
        // Another read has begun since. What the first one kept is checkpointed before anybody
        // waits.
        let young = now + .seconds(1)
        #expect(bound.step(at: 400) { young } == .none)
        #expect(bound.blocker == nil)
        #expect(bound.step(at: 500) { young } == .none)
        #expect(bound.step(at: 501) { young } == .wait(WALBound.patience))
    }

    @Test func `at the second bound a read that was waited for ends, and is reported once`() {
        var bound = blocked(by: past)
        #expect(bound.step(at: 999) { past } == .leave)
        #expect(bound.step(at: 1000) { past } == .end(begunBy: now, .byteCount))
        for count in 1000..<1100 { #expect(bound.step(at: count) { past } == .leave) }
    }

    @Test func `a read ends when it is too old, below the second bound too`() {
        var bound = blocked(by: past, maximumAge: .seconds(1))
        guard case .end(let begunBy, .age) = bound.step(at: 101, oldestRead: { past }) else {
            Issue.record("it goes on")
            return
        }
        #expect(begunBy >= past && begunBy < .now)
        #expect(bound.step(at: 102) { past } == .leave)
        // After its end, a younger read that was waited for goes on until it is too old, or the WAL
        // too long.
        let young = now - .milliseconds(1)
        bound = blocked(by: young, maximumAge: .seconds(3600))
        #expect(bound.step(at: 101) { young } == .leave)
        #expect(bound.step(at: 1000) { young } == .end(begunBy: now, .byteCount))
    }

    @Test func `nobody waits for another process again until all frames could be checkpointed`() {
        var bound = blocked(by: nil)
        #expect(bound.blocker == .otherProcess)
        for count in 100..<2000 { #expect(bound.step(at: count) { nil } == .leave) }
        // Short concurrent reads of the store are not to blame.
        #expect(bound.step(at: 2000) { past } == .leave)
        bound.didMoveAll()
        #expect(bound.step(at: 2000) { nil } == .wait(WALBound.lastPatience))
    }

    @Test func `reads that overlap are waited for again when the WAL has grown`() {
        var bound = blocked(by: past, isMoved: true)
        #expect(bound.blocker == nil)
        let young = ContinuousClock.now + .seconds(1)
        #expect(bound.step(at: 125) { young } == .none)
        #expect(bound.step(at: 126) { young } == .wait(WALBound.patience))
        // The next time would be beyond the second bound, where the wait is longer.
        bound.didWaitInVain(at: 900, since: now, isMoved: true, oldestRead: past)
        #expect(bound.step(at: 999) { young } == .none)
        #expect(bound.step(at: 1000) { young } == .wait(WALBound.lastPatience))
        bound.didRestart()
        #expect(bound.step(at: 99) { past } == .none)
    }

    @Test func `the second bound is never below the first`() {
        var configuration = Configuration()
        configuration.maximumWALByteCount = 1000 * 4096
        configuration.maximumSnapshotWALByteCount = 0
        var bound = WALBound(configuration, pageByteCount: 4096)
        #expect(bound.step(at: 999) { nil } == .none)
        bound.didWaitInVain(at: 1000, since: now, isMoved: false, oldestRead: past)
        #expect(bound.step(at: 1001) { past } == .end(begunBy: now, .byteCount))
    }
}
