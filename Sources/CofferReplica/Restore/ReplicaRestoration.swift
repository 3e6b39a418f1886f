import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One run of a restore from a remote.
///
/// 1. The end of the replica is found, and the last term before it that begins with no page.
/// 2. From there on each record is read, decrypted and checked against the one before. The pages of
///    a commit are written when its last record is there.
/// 3. Every page is authenticated, and the tags of all are compared with the digest of the last
///    commit: it finds a lost page that has an older content, which its MAC does not show.
///    Meanwhile SQLite checks the structure. Then the file gets its name.
struct ReplicaRestoration {
    let access: RemoteAccess
    let path: String
    let moment: ReplicaMoment
    /// A position that the replica must have.
    let atLeast: ReplicaPosition?
    let configuration: Configuration
    /// Whether to look for records too that the moment does not need.
    let looksAtAll: Bool
    let progress: (@Sendable (CopyProgress) -> Void)?

    /// What the file has after a commit.
    private struct Commit {
        let position: ReplicaPosition
        let pageCount: Int
        let digest: UInt128
        let time: Date
        /// The number of the key that the pages are under; `nil` without a keyring.
        let epoch: UInt32?
        /// The loss of a record after the moment; `nil` if none was noticed. If a clock was wrong,
        /// a commit of the moment may have followed it.
        var damage: StoreError?

        init(_ found: LogReader.Found) {
            position = ReplicaPosition(found.slot, found.sealed.hash)
            pageCount = Int(found.record.pageCount)
            (digest, time) = (found.record.digest, found.record.moment)
            epoch = found.record.note.keyring?.epoch
        }
    }

    func run(key: consuming StoreKey) async throws -> ReplicaRestoreReport {
        let replica = try await OpenReplica.at(
            access, path, key, memoryMax: configuration.maximumKeyMemoryByteCount)
        let reader = replica.reader
        let end = try await end(of: replica.end, reader)
        let target = Target(try ReplicaTarget(replica.source, configuration))
        let snapshot = try await reader.lastSnapshot(upTo: end)
        // Of a position that is not kept any more, the place is all that can be compared.
        let last = replica.end.last.slot
        if let atLeast, atLeast.slot > last || snapshot.found?.index.keeps(atLeast.slot) != false {
            try await require(atLeast, upTo: last, reader)
        }
        let missing = looksAtAll ? try await missing(upTo: end, snapshot, reader) : nil
        let (commit, damage) = try await fill(
            target.file, end, snapshot, reader, replica.description.pageByteCount,
            lost: replica.end.damage ?? snapshot.damage ?? missing)
        if let atLeast, commit.position < atLeast {
            throw StoreError(
                .notFound, "that moment is at \(commit.position), before \(atLeast)",
                hint: "Name a later moment, or restore without the position.")
        }
        let epochs = ReplicaEpochs(
            commit: commit.epoch, newest: replica.end.last.record.note.keyring?.epoch)
        let copy = try await prove(target, has: commit, epochs, reader.keys)
        return ReplicaRestoreReport(
            path: path, position: commit.position, time: commit.time,
            isFromBeforeRotation: replica.source.wasRotated(since: epochs), damage: damage,
            copy: copy)
    }

    /// The file, which tasks use.
    private struct Target: @unchecked Sendable {
        // Unchecked because of the file: one task writes, and two only read afterwards.
        let file: ReplicaTarget

        init(_ file: ReplicaTarget) {
            self.file = file
        }
    }

    // MARK: Records

    /// The loss of a record that is kept; `nil` if all are there.
    private func missing(
        upTo end: LogReader.Found, _ snapshot: LogReader.LastSnapshot, _ reader: LogReader
    ) async throws -> StoreError? {
        do {
            let summaries = LogSummaries(reader: reader, end: end.slot)
            try await summaries.readAll(snapshot.found?.index) { _, _, _ in }
            return nil
        } catch let error as StoreError where error.code == .remoteDamaged {
            return error
        }
    }

    /// The record up to which the log is read. A moment before a record that is lost needs none of
    /// the later ones.
    private func end(
        of end: LogReader.End, _ reader: LogReader
    ) async throws -> LogReader.Found {
        guard let slot = end.hole?.before else { return end.last }
        switch moment.kind {
        case .position(let position) where position.slot <= slot:
            return try await reader.existing(slot)
        case .time(let limit):
            let before = try await reader.existing(slot)
            return before.record.moment > limit ? before : end.last
        default: return end.last
        }
    }

    /// Writes the pages of a place where all are, and those of all records from there up to the
    /// moment.
    ///
    /// - Parameter lost: A record that is known to be lost. A later snapshot may do without it.
    /// - Returns: The last commit, and the damage of a snapshot that would have been nearer.
    private func fill(
        _ file: ReplicaTarget, _ end: LogReader.Found, _ snapshot: LogReader.LastSnapshot,
        _ reader: LogReader, _ pageByteCount: Int, lost: StoreError?
    ) async throws -> (Commit, damage: StoreError?) {
        let index = snapshot.found?.index
        let chain = RecordChain(reader: reader, end: end.slot)
        var last = end.slot
        if case .position(let position) = moment.kind {
            guard index?.restores(position.slot) ?? true else { throw notKept(position) }
            try await require(position, upTo: last, reader)
            last = position.slot
        }
        var damage: StoreError?
        let (starts, missing) = try await starts(end, snapshot, reader)
        let lost = lost ?? missing
        for start in starts {
            guard start.first <= last else { continue }
            try file.cut(to: 0)
            let found: Commit?
            switch start {
            case .term(let term):
                found = try await fill(
                    file, chain, from: Slot(term: term, number: 0), to: last, pageByteCount)
                // No commit of it ended: what came before it counts.
                last = min(last, Slot(term: term - 1, number: .max))
            case .snapshot(let kept):
                // Of the time before the whole history, nothing follows a snapshot: another one
                // does not give the commit of one that is damaged.
                let isAlone = kept.end < index?.whole?.end ?? .first
                if isAlone, let damage { throw damage }
                do {
                    if case .time(let limit) = moment.kind, kept.moment > limit,
                        try await reader.existing(kept.end).record.moment > limit
                    {
                        continue
                    }
                    found = try await fill(
                        file, chain, of: kept, to: isAlone ? min(last, kept.end) : last, reader,
                        pageByteCount)
                } catch let error as StoreError where error.code == .remoteDamaged {
                    // An earlier snapshot, with the records since then, gives the same commit.
                    damage = damage ?? error
                    continue
                }
            }
            if let found { return (found, damage ?? found.damage ?? lost) }
            if case .position(let position) = moment.kind { throw notACommit(position) }
        }
        if let damage = damage ?? lost { throw damage }
        throw StoreError(
            .notFound, "the replica at \(access.remote.place) has no whole commit of that time",
            hint: "Its first transfer may not have ended, or the time is before all that is kept. "
                + "Choose another moment.")
    }

    /// A place in a replica from which on the file can be put together.
    private enum Start {
        /// A term that began with no page.
        case term(UInt64)
        case snapshot(SnapshotIndex.Kept)

        /// The first commit that a restore from it may give.
        var first: Slot {
            switch self {
            case .term(let term): Slot(term: term, number: 0)
            case .snapshot(let kept): kept.end
            }
        }
    }

    /// All places from which a restore may begin, the latest first, and the first one of which the
    /// record is lost.
    private func starts(
        _ end: LogReader.Found, _ snapshot: LogReader.LastSnapshot, _ reader: LogReader
    ) async throws -> ([Start], missing: StoreError?) {
        var starts: [Start] = []
        var missing: StoreError?
        let index = snapshot.found?.index
        if let (found, index) = snapshot.found {
            starts = index.kept.map(Start.snapshot)
            starts.append(
                .snapshot(
                    SnapshotIndex.Kept(
                        record: found.slot, begin: index.begin, end: index.end,
                        moment: found.record.moment, remoteTime: found.record.remoteTime)))
        }
        var term = end.wholeTerm
        while let next = term, Slot(term: next, number: 0) >= index?.wholeFrom ?? .first {
            let slot = Slot(term: next, number: 0)
            if let begin = try await reader.whole(at: slot) {
                starts.append(.term(next))
                term = begin.record.note.wholeTerm
            } else {
                missing = missing ?? LogReader.missing(slot)
                term = try await lastRecord(beforeTerm: next, reader)?.wholeTerm
            }
        }
        return (starts.sorted { $0.first > $1.first }, missing)
    }

    /// The last record of the term before one; `nil` if it is not found.
    private func lastRecord(
        beforeTerm term: UInt64, _ reader: LogReader
    ) async throws -> LogReader.Found? {
        let begin = Slot(term: term - 1, number: 0)
        guard term > 1, try await reader.whole(at: begin) != nil else { return nil }
        return try await reader.whole(at: try await LogEnd(access: access).last(from: begin))
    }

    private func fill(
        _ file: ReplicaTarget, _ chain: RecordChain, of snapshot: SnapshotIndex.Kept,
        to last: Slot, _ reader: LogReader, _ pageByteCount: Int
    ) async throws -> Commit? {
        let total = Int(try await reader.existing(snapshot.record).record.pageCount)
        let parts = SnapshotParts(
            reader: reader, index: try await reader.index(at: snapshot.record))
        var (partCount, count) = (0, 0)
        while case let some = try await parts.pages(from: partCount), !some.isEmpty {
            for pages in some {
                try write(pages, of: snapshot, to: file, pageByteCount)
                count += pages.count
            }
            partCount += some.count
            progress?(
                CopyProgress(step: .copyingPages, count: count, countTotal: max(count, total)))
        }
        var first: Commit?
        if snapshot.end == snapshot.begin {
            let found = try await reader.existing(snapshot.end)
            first = Commit(found)
            try file.cut(to: Int(found.record.pageCount))
        }
        let found = try await fill(
            file, chain, from: snapshot.begin.next, to: last, after: first, isSnapshot: true,
            pageByteCount)
        // The time of a commit in between may be later, by a clock that was wrong.
        return found.flatMap { $0.position.slot >= snapshot.end ? $0 : nil }
    }

    private func write(
        _ pages: [ReplicaRecord.Page], of snapshot: SnapshotIndex.Kept, to file: ReplicaTarget,
        _ pageByteCount: Int
    ) throws(StoreError) {
        for page in pages {
            guard page.bytes.count == pageByteCount, page.number > 0 else {
                throw inconsistent(snapshot.record)
            }
            try file.write(page.bytes, at: Int(page.number))
        }
    }

    /// Writes the pages of a record, or keeps them until their commit ends.
    ///
    /// - Parameter spool: Keeps the pages; `nil` to write them at once.
    private func write(
        _ found: LogReader.Found, to file: ReplicaTarget, through spool: PageSpool?,
        _ pageByteCount: Int
    ) throws(StoreError) {
        for page in found.record.pages {
            guard page.bytes.count == pageByteCount, page.number > 0 else {
                throw inconsistent(found.slot)
            }
            if let spool {
                try spool.append(page.bytes, Int(page.number))
            } else {
                try file.write(page.bytes, at: Int(page.number))
            }
        }
    }

    private func fill(
        _ file: ReplicaTarget, _ chain: RecordChain, from first: Slot, to last: Slot,
        after before: Commit? = nil, isSnapshot: Bool = false, _ pageByteCount: Int
    ) async throws -> Commit? {
        var commit = before
        var readCount = 0
        // Of a first transfer that has not ended yet.
        var digest: UInt128?
        // Whether a record after the moment was passed.
        var hasPassed = false
        // Pages of a commit that has not ended yet, if an earlier one may have to stay.
        var pending: PageSpool?
        // Reads no record after `last`: a later one may be damaged or deleted.
        let chain = RecordChain(reader: chain.reader, end: min(last, chain.end))
        func visit(_ found: LogReader.Found) async throws -> Bool {
            // The remote may answer the same question in two ways.
            if let atLeast, found.slot == atLeast.slot { try require(atLeast, isOf: found.sealed) }
            let record = found.record
            var isLater = false
            if case .time(let limit) = moment.kind { isLater = record.moment > limit }
            if isLater, commit != nil { hasPassed = true }
            switch found.header.kind {
            case .begin:
                // Another owner does not end the commit of the one before.
                pending = nil
                guard record.note.isWhole != true else { return true }
                // The parts of a snapshot may be of a later moment.
                if isSnapshot, commit == nil { return true }
                // Another run went on with a first transfer.
                if commit == nil, !record.endsCommit, record.digest == digest { return true }
                guard let before = commit, before.digest == record.digest,
                    before.pageCount == Int(record.pageCount)
                else { throw inconsistent(found.slot) }
                // By a clock that was wrong: the commits that follow may be of the time.
                if isLater { return true }
            case .segment:
                if isLater { return false }
                let spool = pending ?? PageSpool(pageByteCount: pageByteCount, beside: path)
                try write(found, to: file, through: commit == nil ? nil : spool, pageByteCount)
                pending = spool
                readCount += record.pages.count
                progress?(
                    CopyProgress(
                        step: .copyingPages, count: readCount,
                        countTotal: max(readCount, Int(record.pageCount))))
                digest = record.digest
                guard record.endsCommit else { return true }
                try spool.readAll { try file.write($0.bytes, at: Int($0.number)) }
                pending = nil
                try file.cut(to: Int(record.pageCount))
            default: return true
            }
            commit = Commit(found)
            return true
        }
        do {
            try await chain.follow(from: first, visit)
        } catch let error as StoreError where error.code == .remoteDamaged && hasPassed {
            commit?.damage = error
        }
        if case .position(let position) = moment.kind, let found = commit,
            found.position != position
        {
            throw notACommit(position)
        }
        return commit
    }

    /// Refuses a replica that does not have a position.
    private func require(
        _ position: ReplicaPosition, upTo last: Slot, _ reader: LogReader
    ) async throws {
        guard position.slot <= last else { throw tooNew(position, last) }
        let found = try await reader.existing(position.slot)
        try require(position, isOf: found.sealed)
    }

    private func require(
        _ position: ReplicaPosition, isOf record: SealedRecord
    ) throws(StoreError) {
        guard position.isOf(record) else {
            throw StoreError(
                .remoteDamaged,
                "the replica at \(access.remote.place) has another record at \(position)",
                hint: "It is of another history: somebody has put back an older state of the "
                    + "remote, or it is the wrong one.")
        }
    }

    private func inconsistent(_ slot: Slot) -> StoreError {
        StoreError(
            .remoteDamaged, "\(slot.name) does not fit the records before",
            hint: "Restore an earlier moment.")
    }

    private func tooNew(_ position: ReplicaPosition, _ last: Slot) -> StoreError {
        StoreError(
            .remoteDamaged,
            "the replica at \(access.remote.place) ends at \(last), before \(position)",
            hint: "The remote has lost its newest records, or hides them.")
    }

    private func notKept(_ position: ReplicaPosition) -> StoreError {
        StoreError(
            .notFound,
            "the replica at \(access.remote.place) does not keep the commit at \(position) any "
                + "more",
            hint: "List those that it keeps, and choose one of them.")
    }

    private func notACommit(_ position: ReplicaPosition) -> StoreError {
        StoreError(
            .notFound, "no commit ends at \(position)",
            hint: "Name a position that Coffer has printed, or a time.")
    }

    // MARK: Proof

    /// Proves that the file has the pages of a commit, and that it is sound, and gives it its name.
    ///
    /// The structure takes the longest, so it is checked meanwhile. What the pages show is told
    /// first: a structure that is not sound may follow from it.
    private func prove(
        _ target: Target, has commit: Commit, _ epochs: ReplicaEpochs, _ keys: ReplicaKeys
    ) async throws -> CopyReport {
        try target.file.end(pageCount: commit.pageCount, epochs)
        async let structure = Store.offPool { try target.file.check($0) }
        do {
            try await requirePages(target, of: commit, keys)
        } catch {
            target.file.abandon()
            throw error
        }
        let report = try await structure
        progress?(
            CopyProgress(
                step: .verifyingRows, count: report.rowCount, countTotal: report.rowCount))
        try await Store.offPool { _ in try target.file.adopt() }
        return report
    }

    private func requirePages(
        _ target: Target, of commit: Commit, _ keys: ReplicaKeys
    ) async throws {
        try await Store.offPool { [progress] cancellation in
            var digest = UInt128(0)
            let failure = try target.file.readBack(progress, cancellation) { number, tag in
                digest &+= keys.digest(ofPage: number, tag: tag)
            }
            guard digest == commit.digest else {
                throw StoreError(
                    .remoteDamaged, "the pages of the replica are not those that its owner had",
                    hint: "Records of the replica are missing. Restore an earlier moment.")
            }
            if let failure { throw failure }
        }
    }
}
