import DequeModule

/// The stores that a pool has open or is asked for: who uses them, who waits, which is parked next.
///
/// It decides and does nothing itself: each change returns the steps that the pool then takes
/// outside its mutex. A store goes through these phases:
///
/// 1. *Fetching*: its key is asked for, once for all callers. It has no place yet, so that a source
///    of keys that does not answer keeps no store out.
/// 2. *Queued*: it waits for a place, first in, first out.
/// 3. *Opening*, and then *open*: pinned while somebody uses it, else idle. Only an idle store is
///    parked: the least recently used one for a queued store, and each after `idleDuration`.
/// 4. *Closing*: it keeps its place until the file is closed. Callers that ask for it meanwhile
///    wait for that, and it begins again.
///
/// The roster forgets a parked store, so nothing grows with the number of stores that it has seen.
struct PoolRoster {
    /// A caller that waits for a store.
    struct Caller: Sendable {
        let id: Int
        let beginning: ContinuousClock.Instant
        /// Called once, outside the mutex.
        let decide: @Sendable (Result<Lease, any Error>) -> Void
    }

    /// A pinned store: it stays open until `leave(_:now:)`.
    struct Lease: Sendable {
        let id: Int
        let store: Store
    }

    /// A file as a caller named it.
    struct File {
        let given: String
        let location: FileLocation
        /// `nil` for a missing file.
        let identity: FileLocation.Identity?
    }

    enum Step: Sendable {
        case fetchKey(Int, path: String)
        case stopFetching(Task<Void, Never>)
        case open(Int, FileLocation, KeyBox<StoreKey>)
        case close(Int, Store)
        case decide(Caller, Result<Lease, any Error>)
        case finish(Watch, StoreError?)
        /// Memory of the closed stores can go back to the system.
        case releaseMemory
    }

    /// A caller that waits until some stores are closed.
    struct Watch: Sendable {
        var ids: Set<Int>
        let deadline: ContinuousClock.Instant
        /// Called once, outside the mutex, with the first failure.
        let finish: @Sendable (StoreError?) -> Void
    }

    enum Phase {
        case fetching(Task<Void, Never>?)
        case queued(KeyBox<StoreKey>)
        case opening(KeyBox<StoreKey>)
        case open(Store)
        case closing(Store)
    }

    struct Entry {
        let file: File
        var identity: FileLocation.Identity?
        var phase = Phase.fetching(nil)
        var pinCount = 0
        var callerIDs: [Int] = []
        /// Tells the latest place in the list of idle stores from earlier ones.
        var idleStamp = 0
        /// The limit on open files that refused it, until another store was closed.
        var needsRoom = false
        var refusal: StoreError?
        /// Whether the store is closed with its last use.
        var isFailed = false
    }

    /// A store that became idle, in the order of `since`. It counts only while `stamp` is current.
    struct Idle {
        let id: Int
        let stamp: Int
        let since: ContinuousClock.Instant
    }

    /// How many closed stores make it worth while to give memory back.
    static let releasedStoreCount = 16
    /// How soon a store that did not close is tried again.
    static let retryDuration: Duration = .seconds(1)

    let configuration: StorePool.Configuration
    var entries: [Int: Entry] = [:]
    var idByPath: [String: Int] = [:]
    var idByIdentity: [FileLocation.Identity: Int] = [:]
    var callers: [Int: (caller: Caller, file: File, id: Int)] = [:]
    /// Each caller that waits, in the order of the deadlines. Decided ones are left out later.
    var deadlines = Deque<(callerID: Int, instant: ContinuousClock.Instant)>()
    var queue = Deque<Int>()
    var idle = Deque<Idle>()
    var watches: [Watch] = []
    /// Stores that are opening, open or closing.
    var placeCount = 0
    var closingCount = 0
    var closedSinceRelease = 0
    var retryInstant: ContinuousClock.Instant?
    var nextNumber = 0
    var pinnedStoreCount = 0
    var counts = StorePoolStatistics.Counts()
    /// Whether the pool admits nobody any more.
    var isClosed = false

    init(_ configuration: StorePool.Configuration) {
        self.configuration = configuration
    }

    // MARK: Facts

    /// The numbers of one moment, for the metrics and the statistics of the pool.
    struct Facts: Sendable {
        var openStoreCount = 0
        var pinnedStoreCount = 0
        var waitingUseCount = 0
        var counts = StorePoolStatistics.Counts()
    }

    var facts: Facts {
        Facts(
            openStoreCount: placeCount, pinnedStoreCount: pinnedStoreCount,
            waitingUseCount: callers.count, counts: counts)
    }

    /// The instant at which `ring(now:)` has something to do.
    var nextInstant: ContinuousClock.Instant? {
        mutating get {
            while let first = deadlines.first, callers[first.callerID] == nil {
                deadlines.removeFirst()
            }
            var next = retryInstant
            func include(_ instant: ContinuousClock.Instant) {
                next = min(next ?? instant, instant)
            }
            if let first = deadlines.first { include(first.instant) }
            if let duration = configuration.idleDuration, let first = firstIdle {
                include(first.since + duration)
            }
            for watch in watches { include(watch.deadline) }
            return next
        }
    }

    mutating func number() -> Int {
        nextNumber += 1
        return nextNumber
    }

    // MARK: Time

    /// Refuses callers whose time is over, and parks stores that were idle for long enough.
    mutating func ring(now: ContinuousClock.Instant) -> [Step] {
        var steps: [Step] = []
        while let first = deadlines.first, first.instant <= now {
            deadlines.removeFirst()
            guard let id = callers[first.callerID]?.id else { continue }
            counts.timedOutCount += 1
            steps += end(first.callerID, expired(id))
        }
        if let duration = configuration.idleDuration {
            while let first = firstIdle, first.since + duration <= now {
                guard let (id, store) = takeIdle() else { break }
                steps += close(id, store)
            }
        }
        let late = watches.filter { $0.deadline <= now }
        watches.removeAll { $0.deadline <= now }
        steps += late.map { .finish($0, StorePool.inUse) }
        if let instant = retryInstant, instant <= now {
            retryInstant = nil
            steps += isClosed ? parkIdle().steps : fill()
        }
        return steps
    }

    /// The error of a caller that waited for this store until its deadline.
    func expired(_ id: Int) -> StoreError {
        guard let entry = entries[id] else { return StorePool.closed }
        let path = entry.file.location.path
        switch entry.phase {
        case .fetching:
            return StoreError(
                .busy, "timed out waiting for the key of \(path)",
                hint: "The key provider must return or throw in time: see waitTimeout.")
        case .queued:
            if let refusal = entry.refusal { return refusal }
            return StoreError(
                .busy,
                "timed out waiting for a place: \(pinnedStoreCount) stores of the pool are in use",
                hint: "End uses sooner, nest none that need a place, or raise the pool's bounds "
                    + "(now \(configuration.capacity) stores).")
        case .opening, .open:
            return StoreError(
                .busy, "timed out waiting for \(path) to open",
                hint: "It goes on opening: try again, or raise waitTimeout.")
        case .closing:
            return StoreError(
                .busy, "timed out waiting for \(path) to close, after which it opens again",
                hint: "Nothing of a store, such as a snapshot, may outlive the use of it.")
        }
    }
}
