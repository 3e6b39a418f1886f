import Synchronization

/// Waits at gates by threads that keep others waiting at gates.
///
/// Only such waits can close a cycle: A's body waits for B while B's body waits for A. Besides
/// bodies of other stores, `suspend`, `rekey` and `close` keep others waiting. A wait that would
/// close a cycle fails instead.
enum DeadlockWatch {
    private struct Wait {
        let held: [ObjectIdentifier]
        /// For each gate waited at: how many permits others may still hold when the wait ends.
        let maximumOtherCounts: [ObjectIdentifier: Int]
    }

    private struct Waits {
        var nextID = 0
        var waits: [Int: Wait] = [:]

        /// Whether `new` could never end, given all waits that are registered now.
        ///
        /// A wait can end if enough of the permits it needs are free, or are held by waits that can
        /// end. Remove every wait that can end and repeat; the waits that remain are deadlocked.
        func wouldBeStuck(_ new: Wait) -> Bool {
            var stuck = Array(waits.values) + [new]
            while true {
                var heldCounts: [ObjectIdentifier: Int] = [:]
                for gate in stuck.flatMap(\.held) { heldCounts[gate, default: 0] += 1 }
                let canEnd = { (wait: Wait) in
                    wait.maximumOtherCounts.allSatisfy {
                        heldCounts[$0.key, default: 0] <= $0.value
                    }
                }
                if canEnd(new) { return false }
                let count = stuck.count
                stuck.removeAll(where: canEnd)
                if stuck.count == count { return true }
            }
        }
    }

    private static let waits = Mutex(Waits())

    /// Runs `body`, which waits for a permit of `gate`, and registers that wait meanwhile.
    ///
    /// - Parameter held: Gates at which the thread keeps others waiting, besides those of the
    ///   bodies that it is inside of.
    /// - Throws: `.wouldDeadlock`, without running `body`, if the wait would close a cycle of
    ///   registered waits; otherwise what `body` throws.
    static func wait(
        for gate: Gate, holding held: [Gate],
        _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        try wait(
            maximumOtherCounts: [ObjectIdentifier(gate): gate.permitCount - 1], holding: held, body)
    }

    /// Runs `body`, which waits until nobody else holds a permit of any of `gates`, and registers
    /// that wait meanwhile.
    ///
    /// - Parameter held: Gates at which the thread keeps others waiting, besides those of the
    ///   bodies that it is inside of.
    /// - Throws: `.wouldDeadlock`, without running `body`, if the wait would close a cycle of
    ///   registered waits; otherwise what `body` throws.
    static func wait(
        forAllOf gates: [Gate], holding held: [Gate],
        _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        let maximumOtherCounts = Dictionary(
            uniqueKeysWithValues: gates.map { (ObjectIdentifier($0), 0) })
        try wait(maximumOtherCounts: maximumOtherCounts, holding: held, body)
    }

    private static func wait(
        maximumOtherCounts: [ObjectIdentifier: Int], holding held: [Gate],
        _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        let wait = Wait(
            held: HeldStore.gatesHeld + held.map { ObjectIdentifier($0) },
            maximumOtherCounts: maximumOtherCounts)
        let id: Int? = waits.withLock { waits in
            if waits.wouldBeStuck(wait) { return nil }
            waits.nextID += 1
            waits.waits[waits.nextID] = wait
            return waits.nextID
        }
        guard let id else {
            throw StoreError(
                .wouldDeadlock,
                "this would wait for a body that waits for this one: a deadlock",
                hint: "Nest stores in the same order everywhere, and write to none in the progress "
                    + "closure of its own compact.")
        }
        defer { waits.withLock { _ = $0.waits.removeValue(forKey: id) } }
        try body()
    }
}

extension Gate {
    /// Blocks this thread until the gate admits it, as `wait(timeout:for:isSharing:)` does, but
    /// refuses a wait that could never end.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait; `nil` waits indefinitely.
    ///   - what: What the error says was waited for.
    ///   - isSharing: Whether `pass()` may admit it.
    ///   - held: Gates at which the thread keeps others waiting, besides those of the bodies that
    ///     it is inside of.
    /// - Throws: `.busy` after the timeout; the reason of `close(_:)`; `.wouldDeadlock` at once if
    ///   the wait would close a cycle of waits.
    func waitUnlessDeadlocked(
        timeout: Duration?, for what: String, isSharing: Bool = false, holding held: [Gate] = [],
        cancellation: Cancellation? = nil
    ) throws(StoreError) {
        guard HeldStore.isInsideAny || !held.isEmpty else {
            return try wait(
                timeout: timeout, for: what, isSharing: isSharing, cancellation: cancellation)
        }
        if try enterAtOnce() { return }
        try DeadlockWatch.wait(for: self, holding: held) { () throws(StoreError) in
            try wait(
                timeout: timeout, for: what, isSharing: isSharing, cancellation: cancellation)
        }
    }
}
