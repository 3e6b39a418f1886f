/// Copies of whole databases: between connections, into memory and out of it.
///
/// Pages are copied unchanged out of one snapshot; each connection encrypts them with its own key.
/// For another profile, and from or to plaintext, use `Store.upgrade`, `encrypt` and `decrypt`.
extension Connection {
    /// Copies everything into another open connection, replacing its content.
    ///
    /// The target keeps its key. If anything fails, its content is unchanged. If the target has no
    /// file, its prepared statements are finalized.
    ///
    /// - Parameters:
    ///   - target: Not this connection. If it has a file, it must have this connection's profile.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.damaged` if a page of this database fails authentication; `.busy`,
    ///   `.full`, `.io`, `.readOnly`; `.mismatch` for another profile; `.misuse` inside a
    ///   transaction, or while a statement of either connection has a current row.
    /// - Complexity: O(*pages*) time; O(1) memory besides the target's content. Between two files
    ///   O(*pages*) memory, because pages are known to be authentic only once all were read: for
    ///   large files use `save(to:key:progress:)`.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func backup(
        to target: Connection, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        guard target !== self else {
            throw StoreError(.misuse, "a connection cannot be copied into itself")
        }
        let source = try requireNoTransaction()
        let origin = CopyOrigin(
            handle: source, profile: try ownProfile(), isFile: location.url != nil)
        try target.receive(origin, CopyMonitor(progress: progress))
    }

    /// Replaces this connection's content with the content of a file.
    ///
    /// The file is left as it is, and is never created. If anything fails, this connection's
    /// content is unchanged.
    ///
    /// - Parameters:
    ///   - path: The file. If this connection has a file, both must have the same profile.
    ///   - key: The file's key.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.notFound` if there is no such file; the errors of opening it;
    ///   otherwise as `backup(to:progress:)`.
    /// - Complexity: As `backup(to:progress:)`.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func load(
        from path: String, key: borrowing StoreKey, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        _ = try requireNoTransaction()
        let opening = Opening(
            source: try FileLocation(path), configuration: configuration,
            cacheByteCount: CopyTarget.cacheByteCount)
        let source = try opening.open(key: key)
        defer { source.handle.close() }
        let origin = CopyOrigin(handle: source.handle, profile: source.profile, isFile: true)
        try receive(origin, CopyMonitor(progress: progress))
    }

    /// Copies everything into a new file, which appears after all its pages are checked.
    ///
    /// - Parameters:
    ///   - path: The new file, at which there is nothing yet. It gets this database's profile.
    ///   - key: The key of the new file. Never empty.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound` for a missing folder; `.damaged` if a
    ///   page of this database fails authentication; `.full`, `.io`; `.misuse` inside a
    ///   transaction, while a statement has a current row, or for an empty key.
    /// - Complexity: O(*pages*) time; O(1) memory.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func save(
        to path: String, key: borrowing StoreKey, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        let source = try requireNoTransaction()
        try key.check()
        let profile = try ownProfile()
        let monitor = CopyMonitor(progress: progress)
        let target = try CopyTarget(
            at: CopyTarget.location(path), of: (try? fileState())?.file,
            key: CopyKey(new: key, profile: profile, configuration), configuration: configuration)
        let origin = CopyOrigin(handle: source, profile: profile, isFile: location.url != nil)
        try origin.copy(into: target, monitor)
        _ = try target.check(against: nil, monitor)
        try target.adopt()
    }

    // MARK: Inside

    private func receive(_ origin: CopyOrigin, _ monitor: CopyMonitor) throws(StoreError) {
        let target = try requireNoTransaction()
        guard mode != .readOnly else {
            throw StoreError(.readOnly, "the file was opened for reading only")
        }
        let profile = try ownProfile()
        guard location.url != nil else {
            try requireNothingAttached()
            let copy = try privateCopy(of: origin, monitor)
            return try replace(with: copy, profile: origin.profile)
        }
        guard profile == origin.profile else {
            throw StoreError(
                .mismatch, "pages of \(origin.profile) do not fit a file of another profile",
                hint: "Use Store.upgrade to change the profile.")
        }
        defer {
            forgetAttachments()
            target.probing.cleanMissCount = nil
        }
        guard origin.isFile else { return try origin.copy(into: target, monitor) }
        // A write to a file cannot be undone: first read everything and prove it authentic.
        let staged = try privateCopy(of: origin, monitor)
        defer { staged.close() }
        try CopyOrigin(handle: staged, profile: origin.profile, isFile: false)
            .copy(into: target, monitor)
    }

    private func privateCopy(
        of origin: CopyOrigin, _ monitor: CopyMonitor
    ) throws(StoreError) -> Handle {
        let (copy, _) = try PrivateDatabase.open(
            .memory, profile: origin.profile, configuration: configuration,
            cacheByteCount: cacheByteCount)
        do throws(StoreError) {
            try origin.copy(into: copy, monitor)
        } catch {
            copy.close()
            throw error
        }
        return copy
    }
}

/// The source of a copy.
private struct CopyOrigin {
    /// In no transaction.
    let handle: Handle
    let profile: CipherProfile
    let isFile: Bool

    /// Copies one snapshot. When this returns, everything read is known to be authentic.
    func copy(into target: Handle, _ monitor: CopyMonitor) throws(StoreError) {
        try handle.run(.begin)
        defer { try? handle.run(.rollback) }
        // Takes the snapshot. Without it the probe cannot see the pages that the copy reads.
        _ = try handle.firstText(Probe.sql)
        try PageCopy(source: handle, target: target, monitor: monitor).run()
    }

    /// Copies one snapshot into a new file.
    func copy(into target: borrowing CopyTarget, _ monitor: CopyMonitor) throws(StoreError) {
        let handle = try target.openEmpty()
        defer { handle.close() }
        try copy(into: handle, monitor)
    }
}
