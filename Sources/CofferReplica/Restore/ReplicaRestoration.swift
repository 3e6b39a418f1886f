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
/// 3. The tags of all pages are compared with the digest of the last commit: it finds a lost page
///    that has an older content, which its MAC does not show.
/// 4. Every page is authenticated, and SQLite checks the structure. Then the file gets its name.
struct ReplicaRestoration {
    let access: RemoteAccess
    let path: String
    let moment: ReplicaMoment
    /// A position that the replica must have.
    let atLeast: ReplicaPosition?
    let configuration: Configuration
    let progress: (@Sendable (CopyProgress) -> Void)?

    /// What the file has after a commit.
    private struct Commit {
        let position: ReplicaPosition
        let pageCount: Int
        let digest: UInt128
        let time: Date
    }

    func run(key: consuming StoreKey) async throws -> ReplicaRestoreReport {
        let place = access.remote.place
        let description = try await ReplicaDescription.existing(access)
        let source = try description.source(path, key)
        let target = Target(try ReplicaTarget(source, configuration))
        let keys = ReplicaKeys(source.secret(), replica: description.replicaNumber)
        let reader = LogReader(access: access, keys: keys)
        guard let end = try await reader.end()?.last.slot else {
            throw StoreError(.notFound, "the replica at \(place) has no records yet")
        }
        if case .position = moment.kind {
        } else {
            try await LogEnd(access: access).requireNothing(after: end)
        }
        if let atLeast { try await require(atLeast, upTo: end, reader) }
        let commit = try await fill(
            target.file, RecordChain(reader: reader, end: end), reader, description.pageByteCount)
        if let atLeast, commit.position < atLeast {
            throw StoreError(
                .notFound, "that moment is at \(commit.position), before \(atLeast)",
                hint: "Name a later moment, or restore without the position.")
        }
        return try await Store.offPool { [path, progress] cancellation in
            try Self.require(target.file, has: commit, keys, cancellation)
            let copy = try target.file.adopt(
                pageCount: commit.pageCount, progress, cancellation)
            return ReplicaRestoreReport(
                path: path, position: commit.position, time: commit.time, copy: copy)
        }
    }

    /// The file, which one task after the other uses.
    private struct Target: @unchecked Sendable {
        // Unchecked because of the file: the tasks that have it run one after the other.
        let file: ReplicaTarget

        init(_ file: ReplicaTarget) {
            self.file = file
        }
    }

    // MARK: Records

    /// Writes the pages of all records up to the moment.
    ///
    /// - Returns: The last commit.
    private func fill(
        _ file: ReplicaTarget, _ chain: RecordChain, _ reader: LogReader, _ pageByteCount: Int
    ) async throws -> Commit {
        var last = chain.end
        if case .position(let position) = moment.kind {
            try await require(position, upTo: last, reader)
            last = position.slot
        }
        var term = last.term
        while term > 0 {
            let begin = try await reader.existing(Slot(term: term, number: 0))
            if begin.record.note.isWhole == true {
                try file.cut(to: 0)
                let found = try await fill(file, chain, from: begin.slot, to: last, pageByteCount)
                if let found { return found }
                if case .position(let position) = moment.kind { throw notACommit(position) }
                // No commit of it ended: what came before it counts.
                last = Slot(term: term - 1, number: .max)
            }
            term -= 1
        }
        throw StoreError(
            .notFound, "the replica at \(access.remote.place) has no whole commit of that time",
            hint: "Its first transfer may not have ended. Choose another moment.")
    }

    private func fill(
        _ file: ReplicaTarget, _ chain: RecordChain, from first: Slot, to last: Slot,
        _ pageByteCount: Int
    ) async throws -> Commit? {
        var commit: Commit?
        var readCount = 0
        // Pages of a commit that has not ended yet, if an earlier one may have to stay.
        var pending: PageSpool?
        try await chain.follow(from: first) { found in
            guard found.slot <= last else { return false }
            // The remote may answer the same question in two ways.
            if let atLeast, found.slot == atLeast.slot { try require(atLeast, isOf: found.sealed) }
            let record = found.record
            if case .time(let limit) = moment.kind, record.moment > limit { return false }
            switch found.header.kind {
            case .begin:
                // Another owner does not end the commit of the one before.
                pending = nil
                guard record.note.isWhole != true else { return true }
                guard let before = commit, before.digest == record.digest,
                    before.pageCount == Int(record.pageCount)
                else { throw inconsistent(found.slot) }
            case .segment:
                let isFirst = commit == nil
                let spool = pending ?? PageSpool(pageByteCount: pageByteCount, beside: path)
                for page in record.pages {
                    guard page.bytes.count == pageByteCount, page.number > 0 else {
                        throw inconsistent(found.slot)
                    }
                    if isFirst {
                        try file.write(page.bytes, at: Int(page.number))
                    } else {
                        try spool.append(page.bytes, Int(page.number))
                    }
                }
                pending = spool
                readCount += record.pages.count
                progress?(
                    CopyProgress(
                        step: .copyingPages, count: readCount,
                        countTotal: max(readCount, Int(record.pageCount))))
                guard record.endsCommit else { return true }
                try spool.readAll { try file.write($0.bytes, at: Int($0.number)) }
                pending = nil
                try file.cut(to: Int(record.pageCount))
            default: return true
            }
            commit = Commit(
                position: ReplicaPosition(found.slot, found.sealed.hash),
                pageCount: Int(record.pageCount), digest: record.digest, time: record.moment)
            return true
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
        guard position.slot <= last, let found = try await reader.record(at: position.slot) else {
            throw tooNew(position, last)
        }
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

    private func notACommit(_ position: ReplicaPosition) -> StoreError {
        StoreError(
            .notFound, "no commit ends at \(position)",
            hint: "Name a position that Coffer has printed, or a time.")
    }

    // MARK: Proof

    private static func require(
        _ file: ReplicaTarget, has commit: Commit, _ keys: ReplicaKeys, _ cancellation: Cancellation
    ) throws {
        var tags = PageTags()
        for number in stride(from: 1, through: commit.pageCount, by: 1) {
            if number & 0xfff == 0, cancellation.isCancelled { throw CancellationError() }
            tags.append(try file.tag(ofPage: number), keys)
        }
        guard tags.digest == commit.digest else {
            throw StoreError(
                .remoteDamaged, "the pages of the replica are not those that its owner had",
                hint: "Records of the replica are missing. Restore an earlier moment.")
        }
    }
}
