import Synchronization

/// Who waits for the write queue of a store while holding that of others.
///
/// Only such waits can close a cycle: A's body waits for B while B's body waits for A. Who finds
/// that its own wait would be the last link does not wait.
enum DeadlockWatch {
    private struct Wait {
        let held: [ObjectIdentifier]
        let wanted: ObjectIdentifier
    }

    private struct Waits {
        var nextID = 0
        var waits: [Int: Wait] = [:]

        /// Whether who holds `store` waits, through any number of others, for one of `held`.
        ///
        /// What a wait holds it holds until it ends, so a cycle that is found is one.
        func leads(from store: ObjectIdentifier, to held: [ObjectIdentifier]) -> Bool {
            var seen: Set<ObjectIdentifier> = []
            var next = [store]
            while let store = next.popLast() {
                if held.contains(store) { return true }
                guard seen.insert(store).inserted else { continue }
                next += waits.values.filter { $0.held.contains(store) }.map(\.wanted)
            }
            return false
        }
    }

    private static let waits = Mutex(Waits())

    /// Runs `body`, which waits for a store's queue.
    ///
    /// - Throws: `.wouldDeadlock` instead of waiting for ever.
    static func wait(
        for wanted: ObjectIdentifier, holding held: [ObjectIdentifier],
        _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        guard !held.isEmpty else { return try body() }
        let id: Int? = waits.withLock { waits in
            if waits.leads(from: wanted, to: held) { return nil }
            waits.nextID += 1
            waits.waits[waits.nextID] = Wait(held: held, wanted: wanted)
            return waits.nextID
        }
        guard let id else {
            throw StoreError(
                .wouldDeadlock, "the store's writer waits for a store that this body writes to",
                hint: "Nest stores in the same order everywhere.")
        }
        defer { waits.withLock { _ = $0.waits.removeValue(forKey: id) } }
        try body()
    }
}

extension Gate {
    /// Blocks this thread until it is its turn in the queue of `store`.
    ///
    /// - Throws: As `wait`; `.wouldDeadlock`.
    func waitUnlessDeadlocked(
        _ store: ObjectIdentifier, timeout: Duration?, for what: String, isSharing: Bool = false
    ) throws(StoreError) {
        let held = HeldStore.queuesHeld
        guard !held.isEmpty else {
            return try wait(timeout: timeout, for: what, isSharing: isSharing)
        }
        if try enterAtOnce() { return }
        try DeadlockWatch.wait(for: store, holding: held) { () throws(StoreError) in
            try wait(timeout: timeout, for: what, isSharing: isSharing)
        }
    }
}
