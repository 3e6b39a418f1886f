/// The freeing of contents that no entry has, in slices.
extension Contents {
    /// The time for which an upload is kept after its last byte came.
    static let uploadLifetime = Duration.seconds(24 * 3600)
    /// Chunks that are freed in one write: 4 MiB. The engine reads each page that it frees.
    private static let sliceCount: Int64 = 16

    /// Frees some chunks of removed contents, and first marks uploads as removed to which no byte
    /// was added for a day.
    ///
    /// - Returns: Whether more may be left.
    /// - Throws: Errors of the statements.
    static func free(_ connection: Connection) throws(StoreError) -> Bool {
        guard let contents = try Contents(connection) else { return false }
        try contents.abandon()
        guard let content = try contents.firstRemoved() else { return false }
        let rows = content << countBits..<(content + 1) << countBits
        let count = try connection.perform(
            """
            DELETE FROM main."coffer:chunks" WHERE id IN (SELECT id FROM main."coffer:chunks" \
            WHERE id >= \(rows.lowerBound) AND id < \(rows.upperBound) LIMIT \(sliceCount))
            """)
        if count < sliceCount {
            try connection.perform("DELETE FROM main.\"coffer:contents\" WHERE id = \(content)")
        }
        return true
    }

    private func abandon() throws(StoreError) {
        let (earliest, _) = try now().subtractingReportingOverflow(
            try Self.uploadLifetime.wholeMicroseconds())
        try connection.perform(
            """
            UPDATE main."coffer:contents" SET state = 'removed' \
            WHERE state <> 'whole' AND state = 'unfinished' AND touched <= \(earliest)
            """)
    }

    private func firstRemoved() throws(StoreError) -> Int64? {
        let row = try connection.firstRow(
            """
            SELECT id FROM main."coffer:contents" \
            WHERE state <> 'whole' AND state = 'removed' ORDER BY id LIMIT 1
            """, isReadOnly: false)
        guard case .integer(let id)? = row?[0], 0 < id, id < Int64.max >> Self.countBits - 1
        else { return nil }
        return id
    }

    /// How long until there is something to free: zero if there is now; `nil` if nothing is known.
    ///
    /// - Throws: Errors of the query.
    static func timeToNext(_ connection: Connection) throws(StoreError) -> Duration? {
        guard let contents = try Contents(connection) else { return nil }
        if try contents.firstRemoved() != nil { return .zero }
        let row = try connection.firstRow(
            """
            SELECT min(touched) FROM main."coffer:contents" \
            WHERE state <> 'whole' AND state = 'unfinished'
            """, isReadOnly: false)
        guard case .integer(let touched)? = row?[0] else { return nil }
        let age = try contents.now().subtractingReportingOverflow(touched).partialValue
        return max(.zero, uploadLifetime - .microseconds(age))
    }

    // MARK: A whole bucket

    /// Marks all contents of a bucket as removed, also those of its uploads.
    ///
    /// - Throws: Errors of the statements.
    func removeAll(of bucket: String) throws(StoreError) {
        let table = try BucketSchema.table(of: bucket).quotedIdentifier()
        try connection.perform(
            SQL(
                text: """
                    UPDATE main."coffer:contents" SET state = 'removed' \
                    WHERE state = 'whole' AND id IN (SELECT value FROM main.\(table))
                    """))
        try connection.perform(
            """
            UPDATE main."coffer:contents" SET state = 'removed' \
            WHERE state <> 'whole' AND bucket = \(bucket)
            """)
    }

    /// Gives the uploads of a bucket its new name.
    ///
    /// - Throws: Errors of the statement.
    func rename(_ bucket: String, to name: String) throws(StoreError) {
        try connection.perform(
            """
            UPDATE main."coffer:contents" SET bucket = \(name) \
            WHERE state <> 'whole' AND bucket = \(bucket)
            """)
    }
}
