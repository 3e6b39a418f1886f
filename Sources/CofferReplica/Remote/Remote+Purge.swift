import Coffer

extension Remote {
    /// Deletes what a replica does not keep any more. Its owner does that by itself, unless its
    /// `ReplicaOptions.deletes` is `false`, as where its credentials do not allow it.
    ///
    /// ```swift
    /// let count = try await remote.purge(key: key)
    /// ```
    ///
    /// An object is deleted a day after the first snapshot that does not need it, by the remote's
    /// clock. The owner may go on meanwhile.
    ///
    /// - Parameter key: Of the store that was replicated.
    /// - Returns: How many objects were deleted.
    /// - Throws: `StoreError` `.notFound` if the remote has no replica; `.wrongKey`;
    ///   `.remoteDamaged` if the record of a snapshot is missing or was changed;
    ///   `.remoteUnfit` if the remote does not tell its time; `.remoteDenied`;
    ///   `.remoteUnavailable` if it cannot be reached for a minute; `CancellationError`.
    /// - Complexity: O(*objects*): all names are listed, and some bytes of each object that is to
    ///   be deleted are read.
    public func purge(key: borrowing StoreKey) async throws -> Int {
        let access = RemoteAccess(
            self, patience: RemoteAccess.Patience(limit: RemoteAccess.beginningLimit))
        let replica = try await OpenReplica.at(access, "", key.copy())
        // A folder tells its time with what is made only.
        try await RemoteProof(self, clock: access.clock).run()
        guard access.estimatedTime != nil else {
            throw StoreError(
                .remoteUnfit, "\(place) does not tell its time, so nothing is deleted")
        }
        let last = replica.end.last
        var count = 0
        if let keyring = last.record.note.keyring {
            count = try await KeyringObjects(access: access).deleteAll(before: keyring.name)
        }
        return try await count + Retention(reader: replica.reader, end: last.snapshot).run()
    }
}
