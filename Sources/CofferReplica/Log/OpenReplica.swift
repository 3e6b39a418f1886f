import Coffer

/// A replica in a remote, and a key that opens it.
struct OpenReplica {
    let description: ReplicaDescription
    let source: ReplicaSource
    let reader: LogReader
    /// The last record, with the owner of its term.
    let end: LogReader.End

    /// Opens the replica at a remote. With a keyring, the one counts that the last record names.
    ///
    /// - Parameters:
    ///   - path: Of the file that is to be made; empty for none.
    ///   - memoryMax: The most memory that a derivation may take, in bytes.
    /// - Throws: `.notFound` if the remote has no replica, or a replica without records;
    ///   `.wrongKey` if the key does not open it; `.keyringMissing` if the key is a credential and
    ///   the store has no keyring; `.remoteDamaged` if a record or the keyring is missing or was
    ///   changed; `.tooCostly`; `.needsNewerEngine`, `.needsNewerProgram`.
    static func at(
        _ access: RemoteAccess, _ path: String, _ key: consuming StoreKey,
        memoryMax: Int = Configuration().maximumKeyMemoryByteCount
    ) async throws -> OpenReplica {
        let description = try await ReplicaDescription.existing(access)
        guard description.hasKeyring else {
            let source = try ReplicaSource(
                path: path, key: key, salt: description.saltBytes, profile: description.profile,
                pageByteCount: description.pageByteCount)
            return try await OpenReplica(access, description, source)
        }
        var rest = try await KeyringObjects(access: access).newest()[...]
        var opened: (replica: OpenReplica, by: KeyringObjects.Found)?
        while opened == nil {
            let (source, used) = try unlocked(
                &rest, description, path, key, memoryMax: memoryMax)
            do {
                opened = (try await OpenReplica(access, description, source), used)
            } catch let error as StoreError where error.code == .wrongKey && !rest.isEmpty {
                // Of another root: everybody can seal one to the public key of a recipient.
                continue
            }
        }
        guard let (replica, used) = opened else {
            throw StoreError(.engine, "no keyring of a replica was tried")
        }
        guard let note = replica.end.last.record.note.keyring else {
            // Nobody has put pages there yet.
            guard replica.end.last.record.pageCount == 0 else { throw replica.noKeyringNote }
            return replica
        }
        guard !note.isOf(used.keyring) else { return replica }
        let named = try await KeyringObjects(access: access).keyring(note.name)
        return try replica.with(named, note, instead: used, path, key, memoryMax: memoryMax)
    }

    private init(
        _ access: RemoteAccess, _ description: ReplicaDescription, _ source: ReplicaSource
    ) async throws {
        let reader = LogReader(
            access: access,
            keys: ReplicaKeys(source.secret(), replica: description.replicaNumber))
        guard let end = try await reader.end() else {
            throw LogReader.noRecords(access)
        }
        self.init(description: description, source: source, reader: reader, end: end)
    }

    private init(
        description: ReplicaDescription, source: ReplicaSource, reader: LogReader,
        end: LogReader.End
    ) {
        (self.description, self.source) = (description, source)
        (self.reader, self.end) = (reader, end)
    }

    // MARK: Keyrings

    /// Opens the first keyring that has a slot for the key. It and all before it are removed from
    /// those that are left.
    private static func unlocked(
        _ rest: inout ArraySlice<KeyringObjects.Found>, _ description: ReplicaDescription,
        _ path: String, _ key: borrowing StoreKey, memoryMax: Int
    ) throws(StoreError) -> (ReplicaSource, KeyringObjects.Found) {
        var refusal: StoreError?
        while let found = rest.popFirst() {
            do throws(StoreError) {
                let source = try ReplicaSource(
                    path: path, key: key, keyring: found.keyring, salt: description.saltBytes,
                    profile: description.profile, pageByteCount: description.pageByteCount,
                    memoryMax: memoryMax)
                return (source, found)
            } catch  where [.wrongKey, .keyringDamaged, .keyringMismatch].contains(error.code) {
                refusal = refusal ?? error
            }
        }
        throw refusal ?? StoreError(.engine, "a replica has no keyring")
    }

    /// The replica, opened by the keyring that its last record names.
    ///
    /// The one that was found first may be of a change that no record names yet: it counts if it is
    /// later, and the credential opens no other. An earlier one may have slots that were removed.
    private func with(
        _ named: ReplicaKeyring?, _ note: KeyringNote, instead used: KeyringObjects.Found,
        _ path: String, _ key: borrowing StoreKey, memoryMax: Int
    ) throws(StoreError) -> OpenReplica {
        // Of the present owner only. A keyring of a fenced owner, or of before a rebuild, may have
        // a later generation and a credential that was removed.
        let isLater =
            used.name > note.name && used.name.term == end.last.slot.term
            && used.keyring.generation > note.generation
        guard let keyring = named else {
            if isLater { return self }
            throw StoreError(
                .remoteDamaged, "\(reader.access.remote.place) has lost \(note.name.name)",
                hint: "Somebody has put an older keyring there, or hides the newest one. "
                    + KeyringObjects.repair)
        }
        guard note.isOf(keyring) else {
            throw KeyringObjects.damaged(note.name, at: reader.access)
        }
        do throws(StoreError) {
            let source = try ReplicaSource(
                path: path, key: key, keyring: keyring, salt: description.saltBytes,
                profile: description.profile, pageByteCount: description.pageByteCount,
                memoryMax: memoryMax)
            return OpenReplica(
                description: description, source: source, reader: reader, end: end)
        } catch  where error.code == .wrongKey && isLater {
            return self
        }
    }

    private var noKeyringNote: StoreError {
        StoreError(
            .remoteDamaged, "\(end.last.slot.name) does not name the keyring of its store",
            hint: "Restore an earlier moment.")
    }
}

extension Keyring {
    /// The newest keyring that a replica has; `nil` if its store has none.
    ///
    /// ```swift
    /// let keyring = try await Keyring.replicated(to: remote)
    /// for slot in keyring?.slots ?? [] { print(slot.id, slot.kind, slot.label) }
    /// ```
    ///
    /// No secret is needed, and nothing is authenticated: who writes to the remote can put another
    /// one there, which opens no record.
    ///
    /// - Throws: `StoreError` `.notFound` if the remote has no replica; `.remoteDamaged` if the
    ///   keyring is missing or was changed; `.tooCostly`, `.needsNewerProgram`; `.remoteDenied`;
    ///   `.remoteUnavailable` if the remote cannot be reached for a minute; `CancellationError`.
    /// - Complexity: O(1): one keyring is read, of 16 KiB.
    public static func replicated(to remote: any Remote) async throws -> Keyring? {
        let access = RemoteAccess(
            remote, patience: RemoteAccess.Patience(limit: RemoteAccess.beginningLimit))
        guard try await ReplicaDescription.existing(access).hasKeyring else { return nil }
        return try await KeyringObjects(access: access).newest().first?.keyring.keyring
    }
}
