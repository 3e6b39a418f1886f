// An entry that has expired stays in the file until it is swept: by the store itself
// (`Configuration.expirySweepInterval`), or by these verbs at once. No verb sees it in between.

extension WriteTransaction {
    /// Removes entries that have expired, from all buckets.
    ///
    /// Observers and a history of changes hear of an expired entry now, as of one that is removed.
    ///
    /// - Parameter maximumCount: The most entries to remove, and so how long other writes wait.
    /// - Returns: The number of removed entries. If it is less than `maximumCount`, no expired
    ///   entry is left.
    /// - Throws: `StoreError` `.full`, `.io`, `.damaged`; `.constraint` if a trigger keeps
    ///   an entry, after all other buckets were swept; otherwise as `execute(_:)`.
    /// - Complexity: O(*buckets* + *removed* · log *entries*), and O(*entries*) for a bucket whose
    ///   index was dropped.
    @discardableResult
    public func sweepExpiredEntries(maximumCount: Int = 1_000) throws -> Int {
        let (count, failure) = try ExpirySweep.sweep(connection(), maximumCount: maximumCount)
        if let failure { throw failure }
        return count
    }
}

/// The removal of entries that have expired, from all buckets.
enum ExpirySweep {
    /// The work of a store that sweeps by itself.
    static let work = ExpiryWork(
        sweep: { connection, count in
            let swept = try sweep(connection, maximumCount: count)
            let isMoreLeft = try swept.count == count || Contents.free(connection)
            return ExpiryWork.Slice(isMoreLeft: isMoreLeft, failure: swept.failure)
        },
        timeToNext: { connection in try timeToNext(connection) })

    /// Removes expired entries. A bucket that refuses, by a trigger or a damaged page, does not
    /// keep the others from being swept.
    ///
    /// - Returns: The number of removed entries, and the first bucket's error.
    /// - Throws: Errors of reading the schema, and one that ended the whole transaction.
    fileprivate static func sweep(
        _ connection: Connection, maximumCount: Int
    ) throws(StoreError) -> (count: Int, failure: StoreError?) {
        let now = try connection.configuration.currentDate().microseconds()
        var count = 0
        var failure: StoreError?
        for name in try BucketSchema(connection).expiringNames() where count < maximumCount {
            do throws(StoreError) {
                count += try sweep(name, now, maximumCount - count, connection)
            } catch {
                guard connection.isInTransaction else { throw error }
                failure = failure ?? error.with(table: BucketSchema.table(of: name))
            }
        }
        return (count, failure)
    }

    private static func sweep(
        _ name: String, _ now: Int64, _ maximumCount: Int, _ connection: Connection
    ) throws(StoreError) -> Int {
        let table = try BucketSchema.table(of: name).quotedIdentifier()
        return try connection.perform(
            SQL(
                text: """
                    DELETE FROM main.\(table) WHERE key IN (SELECT key FROM main.\(table) \
                    WHERE expires <= ? ORDER BY expires LIMIT ?)
                    """,
                arguments: [.integer(now), .integer(Int64(maximumCount))]))
    }

    private static func timeToNext(_ connection: Connection) throws -> Duration? {
        let times = [try timeToNextEntry(connection), try Contents.timeToNext(connection)]
        return times.compactMap(\.self).min()
    }

    private static func timeToNextEntry(_ connection: Connection) throws -> Duration? {
        let now = try connection.configuration.currentDate().microseconds()
        var first: Int64?
        for name in try BucketSchema(connection).expiringNames() {
            let table = try BucketSchema.table(of: name).quotedIdentifier()
            let time: Int64? = try connection.scalar(
                SQL(text: "SELECT min(expires) FROM main.\(table) WHERE expires IS NOT NULL"))
            if let time { first = min(first ?? .max, time) }
        }
        return first.map {
            .microseconds(max(0, $0.subtractingReportingOverflow(now).partialValue))
        }
    }
}

extension Store {
    /// Removes all entries that have expired, from all buckets, in slices: other writes wait for
    /// one slice at most.
    ///
    /// Then it frees the chunks of attachments that have expired or were removed, 4 MiB at a time.
    ///
    /// - Parameter sliceCount: The most entries in one write; at least 1.
    /// - Returns: The number of removed entries.
    /// - Throws: As `write(_:)`; the slices before stay removed. The error of a bucket that keeps
    ///   its entries, after all others were swept.
    @discardableResult
    public func sweepExpiredEntries(sliceCount: Int = 256) throws -> Int {
        var (count, failure): (Int, StoreError?) = (0, nil)
        while true {
            let slice = max(1, sliceCount)
            let removed = try write { tx in
                try ExpirySweep.sweep(tx.connection(), maximumCount: slice)
            }
            count += removed.count
            failure = removed.failure
            if removed.count < slice { break }
        }
        while try write({ tx in try Contents.free(tx.connection()) }) {}
        if let failure { throw failure }
        return count
    }

    /// Removes all entries that have expired, from all buckets, in slices, and frees the chunks of
    /// attachments that have expired or were removed.
    ///
    /// - Parameter sliceCount: The most entries in one write; at least 1.
    /// - Returns: The number of removed entries.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func sweepExpiredEntries(sliceCount: Int = 256) async throws -> Int {
        var (count, failure): (Int, StoreError?) = (0, nil)
        while true {
            let slice = max(1, sliceCount)
            let removed = try await write { tx in
                try ExpirySweep.sweep(tx.connection(), maximumCount: slice)
            }
            count += removed.count
            failure = removed.failure
            if removed.count < slice { break }
        }
        while try await write({ tx in try Contents.free(tx.connection()) }) {}
        if let failure { throw failure }
        return count
    }
}
