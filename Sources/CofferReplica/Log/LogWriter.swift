import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The owner's end of a replica: writes one record after the other.
///
/// A record is acknowledged when its slot has it, and all slots before have theirs. An owner that
/// finds a foreign record in its slot is *fenced*: it never writes again, and never takes over by
/// itself.
actor LogWriter {
    private let access: RemoteAccess
    private let keys: ReplicaKeys
    private let owner: Owner
    /// The last acknowledged record.
    private(set) var last: Slot
    private var hash: [UInt8]
    /// The remote's time when it was acknowledged.
    private var acknowledged: Date?
    private(set) var isFenced = false
    /// A record of which the remote may or may not have got the slot.
    private var undecided: Undecided?
    private var isWriting = false
    /// The last record of the replica, without its pages.
    private(set) var state: ReplicaRecord
    /// The last snapshot.
    private(set) var snapshot: Slot?
    /// The last term that began with no page.
    let wholeTerm: UInt64?
    /// The keyring as the last record names it; `nil` for a store without one.
    private(set) var keyring: KeyringNote?

    private struct Undecided {
        let sealed: SealedRecord
        /// The record without its pages.
        let state: ReplicaRecord
        let isSnapshot: Bool
        let keyring: KeyringNote?
    }

    /// The owner of the term.
    struct Owner: Sendable {
        /// By default a name of the machine and the path of the file.
        let name: String
        /// How long commits wait.
        let interval: Duration
        var currentDate: @Sendable () -> Date = { Date.now }
    }

    private init(
        _ access: RemoteAccess, _ keys: ReplicaKeys, _ owner: Owner, begin: SealedRecord,
        _ state: ReplicaRecord
    ) {
        (self.access, self.keys, self.owner, self.state) = (access, keys, owner, state)
        (last, hash, acknowledged) = (begin.slot, begin.hash, access.time)
        (snapshot, keyring) = (state.note.snapshot, state.note.keyring)
        wholeTerm = state.note.isWhole == true ? begin.slot.term : state.note.wholeTerm
        self.state.note = ReplicaRecord.Note()
    }

    // MARK: Ownership

    /// Begins a term after the last record, or the first of an empty replica.
    ///
    /// - Parameters:
    ///   - end: As it was found; `nil` for a replica without records. The caller has decided that
    ///     nobody else owns it.
    ///   - state: What the file is at the begin: `place`, `pageCount` and `digest`.
    /// - Returns: `nil` if the replica has got another record meanwhile: look again.
    /// - Throws: `.remoteUnfit` if the remote creates a name twice; errors of the remote.
    static func begin(
        after end: LogReader.End?, _ state: ReplicaRecord, as owner: Owner, _ access: RemoteAccess,
        _ keys: ReplicaKeys
    ) async throws -> LogWriter? {
        var first = Slot.first
        var hash = RecordHeader.nothingBefore
        if let last = end?.last {
            first = last.slot.beginningOfNextTerm
            hash = last.sealed.hash
            if last.header.kind != .takeover {
                var takeover = last.record
                takeover.pages = []
                takeover.note = ReplicaRecord.Note(
                    owner: owner.name, snapshot: last.snapshot, wholeTerm: last.wholeTerm,
                    keyring: last.record.note.keyring)
                stamp(&takeover, owner, access)
                let sealed = try SealedRecord(
                    .takeover, takeover, at: last.slot.next, after: hash, by: keys)
                guard
                    try await access.createProving(sealed.slot.name, sealed.bytes) == .created
                else { return nil }
                hash = sealed.hash
            }
        }
        var begin = state
        begin.pages = []
        begin.note.owner = owner.name
        begin.note.interval = Int(owner.interval / .milliseconds(1))
        begin.note.snapshot = end?.last.snapshot
        begin.note.wholeTerm = end?.last.wholeTerm
        begin.note.keyring = end?.last.record.note.keyring
        stamp(&begin, owner, access)
        let sealed = try SealedRecord(.begin, begin, at: first, after: hash, by: keys)
        guard try await access.createProving(first.name, sealed.bytes) == .created else {
            return nil
        }
        return LogWriter(access, keys, owner, begin: sealed, begin)
    }

    private static func stamp(
        _ record: inout ReplicaRecord, _ owner: Owner, _ access: RemoteAccess
    ) {
        record.time = owner.currentDate()
        record.remoteTime = access.estimatedTime
    }

    // MARK: Records

    /// Where the last acknowledged record is.
    var position: ReplicaPosition { ReplicaPosition(last, hash) }

    /// Writes a record into the next slot, and waits until the remote has it.
    ///
    /// - Returns: The position of the record.
    /// - Throws: `.fenced` if another owner has taken over; `.remoteDamaged` if the remote has lost
    ///   the record before; errors of the remote that asking again does not cure. After one of
    ///   these the record may be there. The next call finds out first.
    ///
    /// - Parameter record: `nil` for one that says what the last one says.
    @discardableResult
    func append(
        _ kind: RecordKind, _ record: ReplicaRecord? = nil
    ) async throws -> ReplicaPosition {
        guard !isWriting else {
            throw StoreError(.engine, "two records of a replica were written at once")
        }
        isWriting = true
        defer { isWriting = false }
        if let undecided { try await decide(undecided) }
        if last.next.isForMark { try await put(.mark, state) }
        // An undecided record may have become the last one.
        try await put(kind, record ?? state)
        return position
    }

    /// Says that the owner has stopped, so that everybody may take over at once.
    func close() async throws { try await append(.closed) }

    /// Asks the remote whether it still has the last record.
    ///
    /// - Throws: `.remoteDamaged` if it does not; `.fenced` if another owner has deleted it.
    func requireLast() async throws {
        guard try await access.exists(last.name) else {
            if let end = try await LogEnd(access: access).last(), end >= last {
                // The record is there after all: the disk of a folder was mounted in between.
                if end == last { return }
                isFenced = true
                throw fenced
            }
            throw StoreError(
                .remoteDamaged, "\(access.remote.place) has lost \(last.name)",
                hint: "Nothing more is written there. Is it the right place, and is its disk "
                    + "mounted? Otherwise replicate to a new remote.")
        }
    }

    private func put(_ kind: RecordKind, _ record: ReplicaRecord) async throws {
        guard !isFenced else { throw fenced }
        // A folder without its disk, or a bucket that was put back, takes every new name.
        try await requireLast()
        var record = record
        (record.note.snapshot, record.note.wholeTerm) = (snapshot, wholeTerm)
        var keyring = record.note.keyring ?? keyring
        // Until a commit ends, the file is as the last one says.
        if !record.endsCommit { keyring?.epoch = self.keyring?.epoch }
        record.note.keyring = keyring
        Self.stamp(&record, owner, access)
        let sealed = try SealedRecord(kind, record, at: last.next, after: hash, by: keys)
        guard sealed.bytes.count <= RemoteAccess.byteCountMax else {
            throw StoreError(.unsupported, "the store has more pages than a snapshot can name")
        }
        (record.pages, record.note) = ([], ReplicaRecord.Note())
        let undecided = Undecided(
            sealed: sealed, state: record, isSnapshot: kind == .snapshot, keyring: keyring)
        self.undecided = undecided
        try await decide(undecided)
    }

    /// Creates the object of a record, until it is known whose the slot is.
    private func decide(_ record: Undecided) async throws {
        guard !isFenced else { throw fenced }
        let sealed = record.sealed
        guard try await access.create(sealed.slot.name, sealed.bytes) == .created else {
            isFenced = true
            throw fenced
        }
        if isLate { try await requireEnd(sealed) }
        (last, hash, acknowledged) = (sealed.slot, sealed.hash, access.time)
        (state, keyring, undecided) = (record.state, record.keyring, nil)
        if record.isSnapshot { snapshot = sealed.slot }
    }

    /// How far apart two answers may be by the remote's clock. What is deleted is named a day
    /// before.
    private static let longestPause: TimeInterval = 12 * 3600

    /// Whether records after the last acknowledged one may have been deleted, as on a machine that
    /// was asleep: then a free slot does not prove that nobody has taken over.
    private var isLate: Bool {
        guard let acknowledged, let now = access.time else { return false }
        return now.timeIntervalSince(acknowledged) > Self.longestPause
    }

    /// Finds the end from the marks.
    ///
    /// - Throws: `.fenced` if this record is not the last one.
    private func requireEnd(_ sealed: SealedRecord) async throws {
        guard try await LogEnd(access: access).last() == sealed.slot,
            try await access.read(sealed.slot.name) == sealed.bytes
        else {
            isFenced = true
            throw fenced
        }
    }

    private var fenced: StoreError { .fenced(access) }
}

extension StoreError {
    static func fenced(_ access: RemoteAccess) -> StoreError {
        StoreError(
            .fenced, "another owner has taken over the replica at \(access.remote.place)",
            hint: "The store itself goes on, and the replica follows another file now. Taking over "
                + "from there would make this file the newest commit: first look which one has "
                + "what you need.")
    }
}
