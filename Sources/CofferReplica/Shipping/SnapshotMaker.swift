import Coffer
import Crypto

/// Makes the parts of one snapshot, each from the file as it is then.
///
/// Passes go on between the parts. `note(_:_:)` learns of their pages, so that `require(_:)` proves
/// what a restore will find: each page has the tag of its part, or that of the last record after
/// `begin` that has it.
struct SnapshotMaker {
    let store: Store
    let source: ReplicaSource
    let keys: ReplicaKeys
    let access: RemoteAccess
    /// The last record before the snapshot.
    let begin: Slot
    /// That of the snapshot before; its unchanged parts are taken.
    let previous: SnapshotIndex?
    /// Parts of one that failed, by their number.
    let unfinished: [Int: SnapshotIndex.Part]

    private let attempt = UInt64.random(in: 0 ... .max)
    /// Of the pages that the remote had at `begin`.
    private let tags: PageTags
    /// Of the pages that a restore will find.
    private var found: PageTags
    /// Pages of records after `begin`.
    private var recorded: Set<Int> = []
    private(set) var parts: [SnapshotIndex.Part] = []

    init(
        _ store: Store, _ source: ReplicaSource, _ keys: ReplicaKeys, _ access: RemoteAccess,
        begin: Slot, tags: PageTags, previous: SnapshotIndex?,
        unfinished: [Int: SnapshotIndex.Part]
    ) {
        (self.store, self.source, self.keys, self.access) = (store, source, keys, access)
        (self.begin, self.tags) = (begin, tags)
        (self.previous, self.unfinished) = (previous, unfinished)
        found = tags
    }

    /// Pages of a part.
    private var pageCount: Int { ReplicaRecord.pageCountMax(pageByteCount: source.pageByteCount) }

    /// Whether there is a part for each page. What follows is in the records.
    var hasAll: Bool { parts.count * pageCount >= tags.count }

    /// The pages of the next part.
    private var numbers: Range<Int> {
        let first = parts.count * pageCount + 1
        return first..<min(first + pageCount, tags.count + 1)
    }

    /// A part as it was made.
    struct Made: Sendable {
        let part: SnapshotIndex.Part
        /// Of its pages, one after the other; `nil` if they are as they were at `begin`.
        fileprivate let tags: [UInt8]?
        let byteCount: Int
    }

    /// Makes the next part, or takes that of the snapshot before.
    ///
    /// - Throws: `.remoteDamaged` if the remote does not have what it has just got; as
    ///   `Store.withPages`; errors of the remote.
    func make() async throws -> Made {
        let numbers = numbers
        let digest = tags.digest(of: numbers, keys)
        let index = parts.count
        for known in [previous?.part(index), unfinished[index]].compactMap(\.self)
        where known.digest == digest {
            if try await access.exists(known.name.name) {
                return Made(part: known, tags: nil, byteCount: 0)
            }
        }
        let name = SnapshotPartName(begin: begin, attempt: attempt, index: index)
        // Its bytes are out of memory before they are read back.
        guard let made = try await create(name, numbers),
            try await access.read(name.name).map(SealedRecord.hash(of:)) == made.part.hash
        else {
            throw StoreError(
                .remoteDamaged, "\(access.remote.place) does not have \(name.name) as it was sent")
        }
        return made
    }

    /// Reads some pages, and makes a part of them; `nil` if the remote has another one of its name.
    private func create(_ name: SnapshotPartName, _ numbers: Range<Int>) async throws -> Made? {
        let (store, source, keys, begin) = (store, source, keys, begin)
        let (sealed, tags, digest) = try await Store.offPool { cancellation in
            var (tags, digest) = ([UInt8](), UInt128(0))
            var record = ReplicaRecord(time: .init(timeIntervalSince1970: 0))
            record.pages = try store.withPages(of: source, cancellation) { snapshot in
                let numbers = numbers.clamped(to: 0..<snapshot.pageCount + 1)
                var pages: [UInt8] = []
                pages.reserveCapacity(numbers.count * snapshot.pageByteCount)
                for number in numbers {
                    let tag = try snapshot.tag(ofPage: number)[...]
                    tags += tag
                    digest &+= keys.digest(ofPage: number, tag: tag)
                    pages += try snapshot.page(number)
                }
                return ReplicaRecord.Page.list(
                    numbers.lazy.map(UInt32.init), pages[...], snapshot.pageByteCount)
            }
            let sealed = try SealedRecord(
                .part, record, at: begin, name: name.name,
                after: RecordHeader.nothingBefore, by: keys)
            return (sealed, tags, digest)
        }
        guard try await access.create(name.name, sealed.bytes) == .created else { return nil }
        return Made(
            part: SnapshotIndex.Part(name: name, hash: sealed.hash, digest: digest), tags: tags,
            byteCount: sealed.bytes.count)
    }

    /// Adds the part that `make()` has returned.
    mutating func add(_ made: Made) {
        var tags = (made.tags ?? [])[...]
        for number in numbers where !tags.isEmpty {
            let tag = tags.prefix(PageSnapshot.tagByteCount)
            tags = tags.dropFirst(PageSnapshot.tagByteCount)
            if !recorded.contains(number) { found.set(number, tag, keys) }
        }
        parts.append(made.part)
    }

    /// Learns of pages that a record after `begin` has.
    mutating func note(_ numbers: ArraySlice<UInt32>, _ tags: PageTags) {
        for number in numbers {
            guard let tag = tags[Int(number)] else { continue }
            recorded.insert(Int(number))
            found.set(Int(number), tag, keys)
        }
    }

    /// Proves that parts and records give the file of a commit.
    ///
    /// - Throws: `.engine` if they do not.
    func require(_ tags: PageTags) throws(StoreError) {
        var found = found
        found.cut(to: tags.count, keys)
        guard found == tags else {
            throw StoreError(
                .engine, "a snapshot does not have the pages of the store, and is not used")
        }
    }
}
