// An entry that has expired stays in the file until it is swept. No verb sees it in between.

extension WriteTransaction {
    /// Removes entries that have expired, from all buckets.
    ///
    /// Observers and a history of changes hear of an expired entry now, as of one that is removed.
    ///
    /// - Parameter maximumCount: The most entries to remove, and so how long other writes wait.
    /// - Returns: The number of removed entries. If it is less than `maximumCount`, no expired
    ///   entry is left.
    /// - Throws: `StoreError` `.full`, `.io`, `.damaged`; otherwise as `execute(_:)`.
    /// - Complexity: O(*buckets* + *removed* · log *entries*), and O(*entries*) for a bucket whose
    ///   index was dropped.
    @discardableResult
    public func sweepExpiredEntries(maximumCount: Int = 1_000) throws -> Int {
        let connection = try connection()
        let schema = BucketSchema(connection)
        let now = try connection.configuration.currentDate().microseconds()
        var count = 0
        for name in try schema.expiringNames() where count < maximumCount {
            let table = try BucketSchema.table(of: name).quotedIdentifier()
            count += try connection.perform(
                SQL(
                    text: """
                        DELETE FROM main.\(table) WHERE key IN (SELECT key FROM main.\(table) \
                        WHERE expires <= ? ORDER BY expires LIMIT ?)
                        """,
                    arguments: [.integer(now), .integer(Int64(maximumCount - count))]))
        }
        return count
    }
}

extension Store {
    /// Removes all entries that have expired, from all buckets, in slices: other writes wait for
    /// one slice at most.
    ///
    /// - Parameter sliceCount: The most entries in one write; at least 1.
    /// - Returns: The number of removed entries.
    /// - Throws: As `write(_:)`; the slices before stay removed.
    @discardableResult
    public func sweepExpiredEntries(sliceCount: Int = 256) throws -> Int {
        var count = 0
        while true {
            let slice = max(1, sliceCount)
            let removed = try write { tx in try tx.sweepExpiredEntries(maximumCount: slice) }
            count += removed
            if removed < slice { return count }
        }
    }

    /// Removes all entries that have expired, from all buckets, in slices.
    ///
    /// - Parameter sliceCount: The most entries in one write; at least 1.
    /// - Returns: The number of removed entries.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    @discardableResult
    public func sweepExpiredEntries(sliceCount: Int = 256) async throws -> Int {
        var count = 0
        while true {
            let slice = max(1, sliceCount)
            let removed = try await write { tx in
                try tx.sweepExpiredEntries(maximumCount: slice)
            }
            count += removed
            if removed < slice { return count }
        }
    }
}
