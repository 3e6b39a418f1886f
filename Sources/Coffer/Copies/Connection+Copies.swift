/// Whole databases from one place to another: between connections, into memory and out of it.
///
/// The pages are copied as they are, each under the key of its own connection, out of one snapshot.
/// For another profile, and from or to plaintext, there are `Store.migrate`, `encrypt`, `decrypt`.
extension Connection {
    /// Copies everything into another open connection, in place of what it holds.
    ///
    /// The target keeps its key. If anything fails, it holds what it held. Statements that were
    /// prepared on a target without a file end.
    ///
    /// - Parameters:
    ///   - target: Not this connection. One to a file must have the same profile.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.damaged` if a page of this database fails authentication; `.busy`,
    ///   `.full`, `.io`, `.readOnly`; `.mismatch` for another profile; `.misuse` inside a
    ///   transaction, or while a statement of either connection is at a row.
    /// - Complexity: O(*pages*) time; O(1) memory if the target's own is not counted. Between two
    ///   files O(*pages*) memory, since a page is known to be authentic only when all were read:
    ///   for large ones use `save(to:key:progress:)`.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func backup(
        to target: Connection, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        guard target !== self else {
            throw StoreError(.misuse, "a connection is not copied into itself")
        }
        let source = try requireNoTransaction()
        let origin = CopyOrigin(
            handle: source, profile: try ownProfile(), isFile: location.url != nil)
        try target.receive(origin, CopyMonitor(progress: progress) { false })
    }

    /// Takes everything from a file, in place of what this connection holds.
    ///
    /// The file is left as it is, and is never made. If anything fails, this connection holds what
    /// it held.
    ///
    /// - Parameters:
    ///   - path: The file. For a connection to a file both must have the same profile.
    ///   - key: The file's key.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.notFound` if there is no such file; what opening it throws; as
    ///   `backup(to:progress:)`.
    /// - Complexity: As `backup(to:progress:)`.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func load(
        from path: String, key: consuming StoreKey, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        _ = try requireNoTransaction()
        let opening = Opening(
            source: try FileLocation(path), configuration: configuration,
            cacheByteCount: CopyTarget.cacheByteCount)
        let source = FileState(try opening.open(key: key))
        defer { source.handle.close() }
        let origin = CopyOrigin(handle: source.handle, profile: source.profile, isFile: true)
        try receive(origin, CopyMonitor(progress: progress) { false })
    }

    /// Copies everything into a new file, which appears when all its pages were checked.
    ///
    /// - Parameters:
    ///   - path: The new file, at which there is nothing yet. It gets this database's profile.
    ///   - key: The key of the new file. Never empty.
    ///   - progress: Called about once for every 256 pages.
    /// - Throws: `StoreError` `.alreadyExists`; `.notFound` for a missing folder; `.damaged` if a
    ///   page of this database fails authentication; `.full`, `.io`; `.misuse` inside a
    ///   transaction, while a statement is at a row, or for an empty key.
    /// - Complexity: O(*pages*) time; O(1) memory.
    /// - Note: The corresponding C functions are `sqlite3_backup_*`.
    public func save(
        to path: String, key: consuming StoreKey, progress: ((CopyProgress) -> Void)? = nil
    ) throws {
        let source = try requireNoTransaction()
        try key.check()
        let profile = try ownProfile()
        let monitor = CopyMonitor(progress: progress) { false }
        let target = try CopyTarget(
            at: CopyTarget.location(path), of: (try? fileState())?.file,
            cipher: try FileCipher(new: key, profile: profile), configuration: configuration)
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
                hint: "Use Store.migrate to change the profile.")
        }
        defer {
            forgetAttachments()
            target.cleanMissCount = nil
        }
        guard origin.isFile else { return try origin.copy(into: target, monitor) }
        // What is written to a file cannot be taken back: first everything is read and proven.
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

/// Where pages are copied from.
private struct CopyOrigin {
    /// In no transaction.
    let handle: Handle
    let profile: CipherProfile
    let isFile: Bool

    /// Copies one snapshot. When this returns, all that was read is known to be authentic.
    func copy(into target: Handle, _ monitor: CopyMonitor) throws(StoreError) {
        try handle.run(.begin)
        defer { try? handle.run(.rollback) }
        // Takes the snapshot: without it the probe sees nothing of what the copy reads.
        _ = try handle.firstText(Probe.sql)
        try PageCopy(source: handle, target: target, monitor: monitor).run()
    }

    /// The same into a new file.
    func copy(into target: borrowing CopyTarget, _ monitor: CopyMonitor) throws(StoreError) {
        let handle = try target.openEmpty()
        defer { handle.close() }
        try copy(into: handle, monitor)
    }
}
