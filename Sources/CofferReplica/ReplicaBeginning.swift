import Coffer

/// The beginning of a replication: what the remote has, whether it may be taken over, and with
/// which pages it goes on.
struct ReplicaBeginning {
    let store: Store
    let source: ReplicaSource
    let access: RemoteAccess
    let options: ReplicaOptions
    let health: ReplicaHealth

    /// How often another record may come in between.
    private static let tryCount = 100

    func run() async throws -> Replica {
        let description = try await description()
        guard isOfSource(description) else {
            throw StoreError(
                .remoteOfAnotherStore, "\(access.remote.place) has the replica of another file",
                hint: "Give each store a remote of its own, such as a folder or a prefix.")
        }
        guard description.hasKeyring == source.hasKeyring else {
            throw StoreError(
                .wrongKey,
                "the replica at \(access.remote.place) is of the store as it was "
                    + (source.hasKeyring ? "before it had a keyring" : "with a keyring"),
                hint: "Give the store a new remote. The replica stays, under the old key.")
        }
        let keys = keys(of: description)
        let lock = try lock(keys)
        let reader = LogReader(access: access, keys: keys)
        let owner = LogWriter.Owner(
            name: options.ownerName(of: source.path), interval: options.interval,
            currentDate: options.currentDate)
        let rule = OwnershipRule(
            access: access, owner: owner, sleep: options.sleep, waiting: options.waiting)
        for _ in 0..<Self.tryCount {
            let end = try await reader.end()
            if let damage = end?.damage { throw damage }
            if let end, end.owner != options.takesOverFrom {
                try await rule.requireFree(end)
            }
            let known = try await known(end, reader)
            var state = ReplicaRecord(time: options.currentDate())
            state.note.isWhole = known == nil
            state.digest = known?.tags.digest ?? 0
            let isPartial = known?.isPartial == true
            state.endsCommit = !isPartial
            state.pageCount = isPartial ? 0 : UInt32(known?.tags.count ?? 0)
            let writer = try await LogWriter.begin(after: end, state, as: owner, access, keys)
            guard let writer else { continue }
            return Replica(
                store, source, reader, writer, options, health, lock: lock,
                tags: known?.tags ?? PageTags(), version: known?.version,
                keyring: end?.last.record.note.keyring,
                position: known == nil || isPartial ? nil : await writer.position)
        }
        throw StoreError(
            .ownedElsewhere, "another owner writes to \(access.remote.place) all the time",
            hint: "Stop it first.")
    }

    /// The position of the last commit, if there is nothing to do: the last run of this owner has
    /// ended less than a day ago, and file and keyring are as it left them.
    ///
    /// - Returns: `nil` if there is something to do, or an error to find.
    func unchangedPosition() async throws -> ReplicaPosition? {
        guard let bytes = try await access.read(ReplicaDescription.name) else { return nil }
        let description = try ReplicaDescription(bytes, at: access.remote.place)
        guard isOfSource(description), description.hasKeyring == source.hasKeyring else {
            return nil
        }
        let reader = LogReader(access: access, keys: keys(of: description))
        let end = try await reader.end()
        guard let end, end.last.header.kind == .closed,
            end.owner == options.ownerName(of: source.path),
            // A snapshot may be due later.
            abs(options.currentDate().timeIntervalSince(end.last.record.time))
                < options.snapshotInterval / .seconds(1)
        else { return nil }
        if let damage = end.damage { throw damage }
        let hasKeyring = try await hasNewestKeyring(end.last.record.note.keyring)
        let summaries = LogSummaries(reader: reader, end: end.last.slot)
        let last = try await summaries.lastCommit(of: end.last)
        let state = try await Store.offPool { [store, source, keys = reader.keys] in
            try Self.fileState(store, source, keys, $0)
        }
        guard hasKeyring, last?.describes(state.tags) == true else { return nil }
        return try await summaries.lastPosition(before: end.last)
    }

    /// Whether the remote has the keyring of the store as it is now, and no former one that is to
    /// be deleted; `true` without one.
    private func hasNewestKeyring(_ note: KeyringNote?) async throws -> Bool {
        let keyring = try await Store.offPool { [store, source] _ in
            try store.replicaKeyring(of: source)
        }
        guard let keyring else { return true }
        guard let note, note.isOf(keyring) else { return false }
        let objects = KeyringObjects(access: access)
        // Former keyrings are still to be deleted: a removed credential opens them.
        if options.deletes {
            guard try await objects.names().allSatisfy({ $0 >= note.name }) else { return false }
        }
        return try await objects.has(note)
    }

    private func keys(of description: ReplicaDescription) -> ReplicaKeys {
        ReplicaKeys(
            source.secret(), replica: description.replicaNumber,
            otherKeyHint: "The store has another key, or another root of its keyring, than when "
                + "this replica began: give it a new remote. The replica stays, under the old key.")
    }

    private func isOfSource(_ description: ReplicaDescription) -> Bool {
        description.saltBytes == source.salt && description.profile == source.profileName
            && description.pageByteCount == source.pageByteCount
    }

    /// Keeps other processes of this machine from replicating the file to the same remote.
    private func lock(_ keys: ReplicaKeys) throws(StoreError) -> PageTagFile.Lock? {
        switch PageTagFile(beside: source.path, of: keys).lock() {
        case .taken(let lock): return lock
        case .impossible: return nil
        case .held where options.takesOverFrom == options.ownerName(of: source.path): return nil
        case .held:
            throw StoreError(
                .ownedElsewhere,
                "another process of this machine replicates \(source.path) to "
                    + access.remote.place,
                hint: "End it first, or leave the work to it.")
        }
    }

    /// The description of the replica, which is made if the remote is empty.
    private func description() async throws -> ReplicaDescription {
        let place = access.remote.place
        if let bytes = try await access.read(ReplicaDescription.name) {
            return try ReplicaDescription(bytes, at: place)
        }
        let new = ReplicaDescription(
            salt: source.salt, profile: source.profileName, pageByteCount: source.pageByteCount,
            hasKeyring: source.hasKeyring)
        if try await access.createProving(ReplicaDescription.name, new.bytes) == .created {
            return new
        }
        guard let bytes = try await access.read(ReplicaDescription.name) else {
            throw StoreError(.remoteUnfit, "\(place) has lost an object that it has just had")
        }
        return try ReplicaDescription(bytes, at: place)
    }

    /// The file as of one moment.
    private struct FileState {
        let tags: PageTags
        /// Identifies the moment, as `PageSnapshot.version` does.
        var version: PageVersion?
        /// Whether a first transfer broke off there.
        var isPartial = false
    }

    /// The state that the replica has; `nil` if it is not known.
    ///
    /// The file shows it if it is as the last commit says. Otherwise the tags beside the file do.
    /// Records after the last commit are of a pass that did not end, and nobody restores them.
    ///
    /// - Throws: `.remoteAhead` if the file is as an earlier record says.
    // With optimisation, Swift 6.3.1 makes code of it that crashes.
    @_optimize(none)
    private func known(_ end: LogReader.End?, _ reader: LogReader) async throws -> FileState? {
        guard let end else { return nil }
        let summaries = LogSummaries(reader: reader, end: end.last.slot)
        let last = try await summaries.lastCommit(of: end.last)
        let state = try await Store.offPool { [store, source, keys = reader.keys] in
            try Self.fileState(store, source, keys, $0)
        }
        if last?.describes(state.tags) == true { return state }
        let search = HistorySearch(
            reader: reader, end: end.last.slot, index: try await reader.index(upTo: end.last))
        let slots = try await search.slots(of: state.tags)
        guard let slot = slots.last else {
            let file = PageTagFile(beside: source.path, of: reader.keys)
            guard let last else {
                let kept = file.tags(
                    countMax: max(state.tags.count, Int(end.last.record.pageCount)), reader.keys)
                return try await brokenOff(end.last, kept, file, reader)
            }
            let kept = file.tags(countMax: Int(last.pageCount), reader.keys)
            guard let kept, last.describes(kept) else { return nil }
            return FileState(tags: kept)
        }
        if let kept = options.keepsFileAt, slots.contains(kept.slot),
            try await search.position(at: kept.slot) == kept
        {
            return nil
        }
        let position = try await search.position(at: slot)
        throw StoreError(
            .remoteAhead,
            "\(source.path) is as it was at \(position), and the replica at "
                + "\(access.remote.place) has later commits",
            hint: "Was an old copy put back? Restore the replica to a new file to have the later "
                + "commits, or keep the file: they stay in the replica, and can be restored by "
                + "their position.")
    }

    /// The pages of a first transfer that broke off; `nil` if they are not known.
    ///
    /// - Parameter kept: The tags of the file beside the store. The run may have ended before those
    ///   of the last record came into it: then they are added.
    private func brokenOff(
        _ last: LogReader.Found, _ kept: PageTags?, _ file: PageTagFile, _ reader: LogReader
    ) async throws -> FileState? {
        guard !last.record.endsCommit, var kept, kept.count > 0 else { return nil }
        let isBehind = last.record.digest != kept.digest
        if isBehind {
            let summaries = LogSummaries(reader: reader, end: last.slot)
            guard let slot = try await summaries.lastSegment() else { return nil }
            let record = try await reader.existing(slot).record
            kept.cut(to: Int(record.pageCount), reader.keys)
            for page in record.pages {
                guard let tag = source.tag(of: page.bytes), page.number > 0,
                    page.number <= record.pageCount
                else { return nil }
                kept.set(Int(page.number), tag, reader.keys)
            }
        }
        guard last.record.digest == kept.digest, !isBehind || file.write(kept, since: PageTags())
        else { return nil }
        return FileState(tags: kept, isPartial: true)
    }

    /// The tags of all pages of the file, as they are now.
    private static func fileState(
        _ store: Store, _ source: ReplicaSource, _ keys: ReplicaKeys, _ cancellation: Cancellation
    ) throws -> FileState {
        try store.withPages(of: source, cancellation) { snapshot in
            var tags = PageTags()
            for number in stride(from: 1, through: snapshot.pageCount, by: 1) {
                if number & 0xfff == 0 { try snapshot.requireGoing() }
                tags.append(try snapshot.tag(ofPage: number)[...], keys)
            }
            return FileState(tags: tags, version: snapshot.version)
        }
    }
}
