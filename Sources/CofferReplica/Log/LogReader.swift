import Coffer

/// Reads the records of a replica.
struct LogReader {
    let access: RemoteAccess
    let keys: ReplicaKeys

    /// A record as it was found.
    struct Found: Sendable {
        let sealed: SealedRecord
        let header: RecordHeader
        let record: ReplicaRecord

        var slot: Slot { sealed.slot }

        /// The last snapshot up to the record.
        var snapshot: Slot? { header.kind == .snapshot ? slot : record.note.snapshot }

        /// The last term up to the record that began with no page: all pages of the file followed.
        var wholeTerm: UInt64? { record.note.isWhole == true ? slot.term : record.note.wholeTerm }
    }

    /// The last record, with the owner of its term.
    struct End: Sendable {
        let last: Found
        /// The owner, by the first record of the term, or by a takeover that nothing follows.
        let owner: String
        /// How long the owner lets commits wait.
        let interval: Duration
        /// A place where a record is lost; `nil` if none was noticed.
        let hole: LogEnd.Hole?

        /// The loss of a record, as an error; `nil` if none was noticed.
        var damage: StoreError? {
            hole.map { hole in
                StoreError(
                    .remoteDamaged,
                    "a record between \(hole.before?.name ?? "the beginning") and "
                        + "\(last.slot.name) is missing",
                    hint: LogReader.lossHint)
            }
        }
    }

    /// The end; `nil` for a replica without records.
    ///
    /// - Throws: As `SealedRecord.open`; errors of the remote.
    func end() async throws -> End? {
        guard let found = try await LogEnd(access: access).find() else { return nil }
        let last = try await existing(found.last)
        let first = Slot(term: found.last.term, number: 0)
        let begin = first == last.slot ? last : try await record(at: first)
        // Behind a hole nobody goes on, and a restore needs no owner.
        guard begin != nil || found.hole != nil else { throw Self.missing(first) }
        let owner = last.header.kind == .takeover ? last.record.note.owner : nil
        return End(
            last: last, owner: owner ?? begin?.record.note.owner ?? "",
            interval: .milliseconds(begin?.record.note.interval ?? 1000), hole: found.hole)
    }

    /// A record that must exist.
    ///
    /// - Throws: `.remoteDamaged` if it does not; as `SealedRecord.open`.
    func existing(_ slot: Slot) async throws -> Found {
        guard let found = try await record(at: slot) else { throw Self.missing(slot) }
        return found
    }

    /// The index of a snapshot, from its record.
    func index(at slot: Slot) async throws -> SnapshotIndex {
        try await snapshot(at: slot).index
    }

    private func snapshot(at slot: Slot) async throws -> (record: Found, index: SnapshotIndex) {
        let found = try await existing(slot)
        guard let index = found.record.note.index else {
            throw StoreError(.remoteDamaged, "\(slot.name) is not the record of a snapshot")
        }
        return (found, index)
    }

    /// A snapshot that can be read, and the one after it whose record is lost or damaged.
    struct LastSnapshot {
        var found: (record: Found, index: SnapshotIndex)?
        var damage: StoreError?
    }

    /// The last snapshot up to a record whose own record is whole.
    func lastSnapshot(upTo last: Found) async throws -> LastSnapshot {
        var result = LastSnapshot()
        var next = last.snapshot
        while let slot = next {
            do {
                result.found = try await snapshot(at: slot)
                return result
            } catch let error as StoreError where error.code == .remoteDamaged {
                result.damage = result.damage ?? error
            }
            // A record before it names the snapshot before it.
            next = nil
            for number in (0..<slot.number).suffix(Self.triedCount).reversed() where next == nil {
                next = try await whole(at: Slot(term: slot.term, number: number))?.snapshot
            }
        }
        return result
    }

    /// How many records are read to find one that is whole.
    private static let triedCount = 8

    /// The record of a slot; `nil` if the slot is free, or the record is damaged.
    func whole(at slot: Slot) async throws -> Found? {
        do {
            return try await record(at: slot)
        } catch let error as StoreError where error.code == .remoteDamaged {
            return nil
        }
    }

    /// The index of the last snapshot up to a record; `nil` if there is none.
    func index(upTo found: Found) async throws -> SnapshotIndex? {
        guard let snapshot = found.snapshot else { return nil }
        return try await index(at: snapshot)
    }

    static func noRecords(_ access: RemoteAccess) -> StoreError {
        StoreError(
            .notFound, "the replica at \(access.remote.place) has no records yet",
            hint: "Its first transfer has not begun, or somebody has deleted them. Name another "
                + "remote, or try again later.")
    }

    static func missing(_ slot: Slot) -> StoreError {
        StoreError(
            .remoteDamaged, "\(slot.name) is missing", hint: lossHint)
    }

    private static let lossHint =
        "Somebody has deleted it, or the service has lost it. Restore an earlier moment if you "
        + "need one, and give the store a new remote."

    /// The record of a slot; `nil` if the slot is free.
    func record(at slot: Slot) async throws -> Found? {
        guard let bytes = try await access.read(slot.name) else { return nil }
        let sealed = SealedRecord(bytes, at: slot)
        let (header, record) = try sealed.open(by: keys)
        return Found(sealed: sealed, header: header, record: record)
    }

    /// The header of a record; `nil` if the slot is free.
    func header(at slot: Slot) async throws -> RecordHeader? {
        guard let bytes = try await access.read(slot.name, 0..<RecordHeader.byteCount) else {
            return nil
        }
        return try RecordHeader(bytes, at: slot)
    }

    /// The header and the summary of a record; `nil` if the slot is free.
    func summary(at slot: Slot) async throws -> (RecordHeader, ReplicaRecord)? {
        guard let bytes = try await access.read(slot.name, SealedRecord.summaryRange) else {
            return nil
        }
        return try SealedRecord(bytes, at: slot).summary(by: keys)
    }
}
