import Coffer
import Synchronization

extension Store {
    /// Replicates this store to a remote, from now on and until `Replica.close()`.
    ///
    /// ```swift
    /// let replica = try await store.replicate(to: FolderRemote("/mnt/backups/notes"))
    /// ```
    ///
    /// The remote is proven first: it must refuse to create a name twice. The replica goes on with
    /// what the remote has of this store. If that is unknown, all pages are sent.
    ///
    /// Call it before the first write: an old copy of the file that was put back is noticed only as
    /// long as nothing has changed it. After a crash the call waits for three intervals and ten
    /// seconds, until the former owner is surely gone. The first time it sends all pages. A call
    /// that is cancelled or fails says to the remote that it has stopped, so that the next one need
    /// not wait. Close the replica before the store.
    ///
    /// With a keyring, the keyring goes to the remote too, now and after each change. Every
    /// credential that it has restores each commit, also of the time before a rotation.
    ///
    /// - Returns: The replica, after everything committed before the call is in the remote.
    /// - Throws: `StoreError` `.remoteUnfit`; `.remoteDenied`; `.remoteOfAnotherStore`;
    ///   `.ownedElsewhere` if another owner replicates to this remote, unless
    ///   `options.takesOverFrom` names it; `.remoteAhead` if the file is as it was at an earlier
    ///   position, unless `options.keepsFileAt` is that position; `.wrongKey` if the last record is
    ///   under another key;
    ///   `.remoteDamaged`; `.remoteUnavailable` if the remote cannot be reached for a minute,
    ///   or for an hour once the first pages are sent;
    ///   `.unsupported` for a store in memory; `.misuse` for a store with a keyring that does not
    ///   keep its root; `.busy` while that root is being replaced;
    ///   otherwise as `Replica.caughtUp()`.
    /// - Complexity: O(*pages*).
    public func replicate(
        to remote: any Remote, _ options: ReplicaOptions = ReplicaOptions()
    ) async throws -> Replica {
        let (replica, access) = try await started(remote, options)
        access.endLimit()
        await replica.begin()
        return replica
    }

    /// Sends what was committed since the last call, and ends: for a program that runs from time to
    /// time.
    ///
    /// ```swift
    /// let position = try await store.replicateOnce(to: remote)
    /// ```
    ///
    /// It replicates, makes a snapshot if it is time for one, and closes the replica. If nothing
    /// was committed since, it only reads, and writes to the remote once per
    /// `ReplicaOptions.snapshotInterval`. A snapshot that fails does not fail the call, and
    /// `ReplicaOptions.failed` tells: the next call that writes tries again.
    ///
    /// - Returns: The position of the newest commit.
    /// - Throws: As `replicate(to:_:)` and `Replica.close()`; `.remoteUnavailable` if the remote is
    ///   away for an hour at the end.
    /// - Complexity: O(*pages*).
    @discardableResult
    public func replicateOnce(
        to remote: any Remote, _ options: ReplicaOptions = ReplicaOptions()
    ) async throws -> ReplicaPosition {
        if let position = try await unchangedPosition(in: remote, options) { return position }
        let (replica, _) = try await started(remote, options)
        _ = try? await replica.maintain()
        do {
            let position = try await replica.caughtUp()
            try await replica.close()
            return await replica.status.position ?? position
        } catch {
            await replica.giveUp()
            throw error
        }
    }

    /// The position of the newest commit, if the last run has ended and nothing is to do.
    package func unchangedPosition(
        in remote: any Remote, _ options: ReplicaOptions
    ) async throws -> ReplicaPosition? {
        try await beginning(remote, options).unchangedPosition()
    }

    /// A replica that has sent everything, and gives up if the remote is away for long.
    private func started(
        _ remote: any Remote, _ options: ReplicaOptions
    ) async throws -> (Replica, RemoteAccess) {
        let beginning = try beginning(remote, options)
        let access = beginning.access
        try await ProvenRemotes.require(remote, access.clock)
        let replica = try await beginning.run()
        do {
            try await replica.caughtUp()
        } catch {
            await replica.giveUp()
            throw error
        }
        return (replica, access)
    }

    private func beginning(
        _ remote: any Remote, _ options: ReplicaOptions
    ) throws -> ReplicaBeginning {
        let source = try replicaSource()
        let health = ReplicaHealth(options, replicaReports(remote: remote.place))
        var patience = options.patience
        patience.failed = { health.failed($0) }
        patience.limit = patience.limit ?? RemoteAccess.beginningLimit
        return ReplicaBeginning(
            store: self, source: source, access: RemoteAccess(remote, patience: patience),
            options: options, health: health)
    }
}

/// The remotes that this process has proven, with their clocks.
private enum ProvenRemotes {
    private static let clocks = Mutex<[String: RemoteClock]>([:])

    static func require(_ remote: any Remote, _ clock: RemoteClock) async throws {
        let place = "\(type(of: remote)) \(remote.place)"
        if let known = clocks.withLock({ $0[place] }) {
            // A folder tells no time until it makes an object: the first record would have none.
            clock.estimate(as: known)
            return
        }
        try await RemoteProof(remote, clock: clock).run()
        clocks.withLock { $0[place] = clock }
    }
}
