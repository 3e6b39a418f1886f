import Coffer

/// The keyrings in a remote, in the clear as beside their store: without one nobody opens a record.
///
/// Each record names the keyring of its time, with its hash. The list of a remote only finds the
/// first one: the last record then says which one counts.
struct KeyringObjects {
    let access: RemoteAccess

    /// A keyring as it was found.
    struct Found {
        let name: KeyringName
        let keyring: ReplicaKeyring
    }

    /// Puts a keyring into the remote, and reads it back.
    ///
    /// - Throws: `.fenced` if another owner has the term; `.remoteUnfit` if other bytes come back;
    ///   errors of the remote.
    func put(_ keyring: ReplicaKeyring, as name: KeyringName) async throws {
        let creation = try await access.create(name.name, keyring.bytes)
        guard creation == .created else { throw StoreError.fenced(access) }
        let stored = try await access.read(name.name)
        guard stored == keyring.bytes else {
            throw StoreError(
                .remoteUnfit, "\(access.remote.place) does not keep \(name.name) as it was sent",
                hint: "Nothing but this replica may write there. Replicate to a new remote.")
        }
    }

    /// Whether the remote has a keyring as a record names it.
    func has(_ note: KeyringNote) async throws -> Bool {
        guard let bytes = try await access.read(note.name.name) else { return false }
        return note.isOf(bytes)
    }

    /// The names, the newest first.
    func names() async throws -> [KeyringName] {
        var found: [KeyringName] = []
        var last = KeyringName.folder
        while true {
            let names = try await access.names(withPrefix: KeyringName.folder, after: last)
            found += names.compactMap(KeyringName.init(name:))
            guard let next = names.last else { return found.sorted(by: >) }
            last = next
        }
    }

    /// The keyring of a name; `nil` if there is none.
    ///
    /// - Throws: `.remoteDamaged` for bytes that are not a keyring; `.tooCostly`,
    ///   `.needsNewerProgram`.
    func keyring(_ name: KeyringName) async throws -> ReplicaKeyring? {
        guard let bytes = try await access.read(name.name) else { return nil }
        do throws(StoreError) {
            return try ReplicaKeyring(bytes)
        } catch  where error.code == .keyringDamaged {
            throw Self.damaged(name, at: access)
        }
    }

    /// The newest keyrings that are whole: three of them at most, because the newest ones may be of
    /// changes that no record names.
    ///
    /// - Throws: `.remoteDamaged` if there is none; `.notFound` if the replica has just been begun;
    ///   `.tooCostly`, `.needsNewerProgram`.
    func newest() async throws -> [Found] {
        var found: [Found] = []
        var damage: (any Error)?
        let names = try await names()
        if names.isEmpty, try await hasNothing() { throw LogReader.noRecords(access) }
        for name in names where found.count < 3 {
            do {
                // One that has just been deleted is not missed.
                if let keyring = try await keyring(name),
                    !found.contains(where: { $0.keyring.bytes == keyring.bytes })
                {
                    found.append(Found(name: name, keyring: keyring))
                }
            } catch let error as StoreError where error.code == .remoteDamaged {
                damage = damage ?? error
            }
        }
        guard found.isEmpty else { return found }
        throw damage
            ?? StoreError(
                .remoteDamaged,
                "\(access.remote.place) has lost the keyring of its replica, such as "
                    + KeyringName(term: 1, number: 0).name,
                hint: Self.repair)
    }

    /// Whether the first transfer has sent no page yet.
    private func hasNothing() async throws -> Bool {
        guard let last = try await LogEnd(access: access).last() else { return true }
        guard last.term <= 3 else { return false }
        for term in 1...last.term where Slot(term: term, number: 1) <= last {
            let slot = Slot(term: term, number: 1)
            guard let bytes = try await access.read(slot.name, 0..<RecordHeader.byteCount),
                try RecordHeader(bytes, at: slot).kind != .segment
            else { return false }
        }
        return true
    }

    /// Deletes the keyrings before one: a credential that was removed since opens them.
    ///
    /// - Returns: How many were deleted.
    func deleteAll(before name: KeyringName) async throws -> Int {
        let former = try await names().filter { $0 < name }
        for name in former { try await access.delete(name.name) }
        return former.count
    }

    static func damaged(_ name: KeyringName, at access: RemoteAccess) -> StoreError {
        StoreError(
            .remoteDamaged, "\(name.name) of \(access.remote.place) is not as its owner wrote it",
            hint: repair)
    }

    static let repair =
        "If the store exists, replicate it again, which sends its keyring. If it is lost, put the "
        + "first 16384 bytes of its keyring, as it was at the last pass, at that name: no other "
        + "secret opens the replica."
}
