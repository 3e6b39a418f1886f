import Synchronization

/// The decoded values that a store keeps for single gets; see `BucketCache`.
///
/// A value is valid as long as nobody has committed since before it was read. Entries form two
/// generations: when the young one has half of the bounds, it becomes the old one, whose entries
/// are dropped unless a get finds them before.
final class DecodedValues: Sendable {
    private let state: Mutex<State>

    init(_ bounds: BucketCache) {
        state = Mutex(State(bounds))
    }

    /// Looks for the value of a key. It is valid unless it has expired.
    ///
    /// - Returns: The entry, if there is a valid one; and the number of the last commit that was
    ///   noticed, for an entry that is read now.
    func look(for place: CachedPlace) -> (entry: CachedEntry?, commitNumber: UInt64) {
        state.withLock { state in state.look(for: place) }
    }

    /// Keeps an entry, unless somebody has committed since its number was given.
    func keep(_ entry: CachedEntry, at place: CachedPlace) {
        // Released outside of the lock, because a type of the program may do anything in `deinit`.
        _ = state.withLock { state in state.keep(entry, at: place) }
    }

    /// Lets a connection vouch for the entries until it closes, if no other does.
    ///
    /// - Parameter handle: In a read transaction.
    func attach(to handle: Handle) {
        guard state.withLock({ $0.index == nil }), let index = SharedWALIndex(of: handle) else {
            return
        }
        let isAttached = state.withLock { state in
            guard state.index == nil else { return false }
            state.begin(index)
            return true
        }
        guard isAttached else { return }
        handle.willClose = { [weak self] in _ = self?.state.withLock { $0.end() } }
    }

    var statistics: BucketCacheStatistics {
        state.withLock { state in
            BucketCacheStatistics(
                hitCount: state.hitCount, missCount: state.missCount,
                entryCount: state.young.entries.count + state.old.entries.count,
                byteCount: state.young.byteCount + state.old.byteCount)
        }
    }
}

// MARK: Entries

// Neither place nor entry is generic: a get would ask for the metadata of each such type.

/// The place of a value in the cache.
struct CachedPlace: Hashable, Sendable {
    private let table: ObjectIdentifier
    private let type: ObjectIdentifier
    private let key: Value

    /// - Parameters:
    ///   - key: The key as the file has it.
    ///   - table: Stands for the table and its coding. It must never be freed, so that its address
    ///     stands for it alone.
    ///   - type: The type of the value.
    @inline(__always)
    init<V>(_ key: Value, in table: AnyObject, of type: V.Type) {
        self.table = ObjectIdentifier(table)
        self.type = ObjectIdentifier(type)
        self.key = key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(table)
        hasher.combine(key)
    }
}

/// A value as a get has read it, or that the key is absent.
struct CachedEntry: Sendable {
    /// `nil` for an absent key.
    private let box: (any AnyObject & Sendable)?
    /// Microseconds since 1970; `nil` for never.
    let expires: Int64?
    /// The bytes of key and value in the file.
    fileprivate var byteCount: Int
    /// The number of the last commit before it was read.
    fileprivate let commitNumber: UInt64

    /// - Parameter value: `nil` for an absent key.
    init<V: Sendable>(_ value: V?, expires: Int64?, byteCount: Int, commitNumber: UInt64) {
        box = value.map(CachedValue.init)
        (self.expires, self.byteCount, self.commitNumber) = (expires, byteCount, commitNumber)
    }

    /// The value; `nil` if the key is absent.
    ///
    /// - Parameter type: That of the place where the entry was found.
    @inline(__always)
    func value<V: Sendable>(of type: V.Type) -> V? {
        guard let box else { return nil }
        return unsafeDowncast(box, to: CachedValue<V>.self).value
    }
}

private final class CachedValue<V: Sendable>: Sendable {
    let value: V

    init(_ value: V) { self.value = value }
}

/// Entries that were added or found at about the same time.
private struct Generation: Sendable {
    private(set) var entries: [CachedPlace: CachedEntry] = [:]
    private(set) var byteCount = 0

    subscript(place: CachedPlace) -> CachedEntry? { entries[place] }

    /// Puts an entry at a place, and returns the one that was there.
    mutating func put(_ entry: CachedEntry, at place: CachedPlace) -> CachedEntry? {
        let former = entries.updateValue(entry, forKey: place)
        byteCount += entry.byteCount - (former?.byteCount ?? 0)
        return former
    }

    mutating func remove(_ place: CachedPlace) -> CachedEntry? {
        guard let entry = entries.removeValue(forKey: place) else { return nil }
        byteCount -= entry.byteCount
        return entry
    }
}

private struct State {
    /// `nil` while no open connection keeps the memory mapped. Then nothing is found or kept.
    private(set) var index: SharedWALIndex?
    /// Changes with each commit that was noticed.
    private var commitNumber: UInt64 = 0
    private(set) var young = Generation()
    private(set) var old = Generation()
    private(set) var hitCount = 0
    private(set) var missCount = 0
    /// The bounds of one generation.
    private let maximumCount: Int
    private let maximumByteCount: Int

    /// The bytes that an entry takes besides those of its key and value.
    private static let entryByteCount = 128

    init(_ bounds: BucketCache) {
        maximumCount = max(bounds.maximumCount, 0) / 2
        maximumByteCount = max(bounds.maximumByteCount, 0) / 2
    }

    /// Begins to notice commits. The read that runs now may have begun before the last one, so
    /// nothing is kept of it.
    mutating func begin(_ index: SharedWALIndex) {
        self.index = index
        commitNumber += 1
    }

    /// Notices commits.
    private mutating func refresh() {
        if index?.isUnchanged() == false { commitNumber += 1 }
    }

    /// The valid entry of a place.
    mutating func look(for place: CachedPlace) -> (entry: CachedEntry?, commitNumber: UInt64) {
        guard index != nil else {
            missCount += 1
            return (nil, commitNumber)
        }
        refresh()
        let known = young[place]
        guard let found = known ?? old[place], found.commitNumber == commitNumber else {
            missCount += 1
            return (nil, commitNumber)
        }
        hitCount += 1
        if known == nil { move(found, place) }
        return (found, commitNumber)
    }

    /// Makes an entry of the old generation young again, if there is room.
    private mutating func move(_ entry: CachedEntry, _ place: CachedPlace) {
        guard young.entries.count < maximumCount,
            young.byteCount + entry.byteCount <= maximumByteCount
        else { return }
        _ = old.remove(place)
        _ = young.put(entry, at: place)
    }

    /// Keeps an entry that was read after a commit, if that is still the last one.
    ///
    /// - Returns: The entries that are gone.
    mutating func keep(_ entry: CachedEntry, at place: CachedPlace) -> [Any] {
        refresh()
        let byteCount = entry.byteCount + Self.entryByteCount
        guard index != nil, entry.commitNumber == commitNumber, maximumCount > 0,
            byteCount <= maximumByteCount
        else { return [entry] }
        var released: [Any] = []
        if young.entries.count >= maximumCount || young.byteCount + byteCount > maximumByteCount {
            released.append(old)
            (old, young) = (young, Generation())
        }
        if let former = old.remove(place) { released.append(former) }
        var counted = entry
        counted.byteCount = byteCount
        if let former = young.put(counted, at: place) { released.append(former) }
        return released
    }

    /// Drops everything, and reads the shared memory no more.
    ///
    /// - Returns: The entries that are gone.
    mutating func end() -> [Any] {
        let released: [Any] = [young, old]
        index = nil
        commitNumber += 1
        (young, old) = (Generation(), Generation())
        return released
    }
}
