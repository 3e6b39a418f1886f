extension Store {
    /// Gives a store a keyring, so that several credentials open it and its key can be rotated.
    ///
    /// ```swift
    /// try Store.enableKeyring(
    ///     "old.db", key: .passphrase(old), as: .passphrase(new), label: "me"
    /// ) { letters in
    ///     show(letters)
    ///     return readFromPaper()
    /// }
    /// let store = try Store(path: "old.db", key: .keyring(.passphrase(new)))
    /// ```
    ///
    /// The store gets a new root key, and every page a key from it, with the proof of
    /// `rekey(to:abandonsKeyring:)`. The former key opens the store until then, and copies of
    /// before for good. After a crash one of both keys opens every row: call it again with the same
    /// arguments. It finishes.
    ///
    /// Programs that have the store open with the former key do not follow. So the call refuses if
    /// there may be one, unless it is told otherwise.
    ///
    /// - Parameters:
    ///   - path: The path of the store. No store of this process may have it open.
    ///   - key: The passphrase or the raw key that the store has now.
    ///   - credential: Opens the store afterwards. Add others later: see ``Store/keys``.
    ///   - label: The name of its slot in lists.
    ///   - endsOtherPrograms: Whether other programs may lose their access until they open the
    ///     store by the keyring. Needed if one has it open, and without WAL, where nobody can see
    ///     that.
    ///   - configuration: Used to open the store. Its journal mode is not: the store keeps its own.
    ///   - askBack: Shows the letters of a recovery key, which it must not keep, and returns what
    ///     the person has typed from the paper. Nothing was changed by then. `nil` for no recovery
    ///     key: if the credential is lost, nothing opens the store.
    /// - Returns: A report that says whether the main file without its WAL has the new key as well.
    /// - Throws: `StoreError` `.busy` if another program has the store open, or may have it open;
    ///   `.alreadyExists` for a keyring that no unfinished call has made; `.misuse` for a
    ///   credential instead of a key, an external credential, a secret of a wrong size, or other
    ///   letters than were shown; `.tooCostly`; `.alreadyOpen`; errors of `askBack`; otherwise as
    ///   `rekey(to:abandonsKeyring:)` and opening. The former key opens the store then, unless
    ///   the error says otherwise.
    /// - Complexity: O(*pages*) time and disk, as `rekey`; for a passphrase two derivations.
    @discardableResult
    public static func enableKeyring(
        _ path: String, key: borrowing StoreKey, as credential: borrowing KeyCredential,
        label: String, endsOtherPrograms: Bool = false, configuration: Configuration = .init(),
        recovery askBack: ((_ letters: UnsafeRawBufferPointer) throws -> [UInt8])?
    ) throws -> KeyringEnablingReport {
        var configuration = configuration
        configuration.journalMode = .existing
        return try KeyringEnabling(
            path: path, configuration: configuration, endsOtherPrograms: endsOtherPrograms
        ).run(from: key, as: credential, label: label, recovery: askBack)
    }

    /// Gives a store a keyring, without blocking a thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - path: As in the synchronous form.
    ///   - key: As in the synchronous form.
    ///   - credential: As in the synchronous form.
    ///   - label: As in the synchronous form.
    ///   - endsOtherPrograms: As in the synchronous form.
    ///   - configuration: As in the synchronous form.
    ///   - askBack: As in the synchronous form. Runs on a thread that may block.
    /// - Returns: As the synchronous form.
    /// - Throws: As the synchronous form. Cancelling the task does not stop the change.
    @discardableResult
    public static func enableKeyring(
        _ path: String, key: borrowing StoreKey, as credential: borrowing KeyCredential,
        label: String, endsOtherPrograms: Bool = false, configuration: Configuration = .init(),
        recovery askBack: (@Sendable (_ letters: UnsafeRawBufferPointer) throws -> [UInt8])?
    ) async throws -> KeyringEnablingReport {
        let key = KeyBox(key.copy())
        let credential = KeyBox(credential.copy())
        return try await offPool {
            try enableKeyring(
                path, key: key.key, as: credential.key, label: label,
                endsOtherPrograms: endsOtherPrograms, configuration: configuration,
                recovery: askBack)
        }
    }
}

/// The result of `Store.enableKeyring(_:key:as:label:endsOtherPrograms:configuration:recovery:)`.
///
/// ```swift
/// let report = try Store.enableKeyring(path, key: old, as: credential, label: "me", recovery: nil)
/// if !report.isWholeFile { print("\(report.oldPageCount) pages wait for a read to end") }
/// ```
public struct KeyringEnablingReport: Sendable {
    /// Whether this call changed the key; `false` if an earlier one had.
    public let isChanged: Bool
    private let rekey: RekeyReport

    init(isChanged: Bool, rekey: RekeyReport) {
        (self.isChanged, self.rekey) = (isChanged, rekey)
    }

    /// Pages of the store, all of them under a key of the keyring.
    public var pageCount: Int { rekey.pageCount }

    /// Pages of the main file that still have the former key, because a read keeps their newer
    /// versions in the WAL.
    public var oldPageCount: Int { rekey.oldPageCount }

    /// Whether the main file without its WAL is under a key of the keyring.
    public var isWholeFile: Bool { rekey.isWholeFile }

    /// The reason why the WAL could not be moved; `nil` if it was, or if a read kept it.
    public var checkpointFailure: StoreError? { rekey.checkpointFailure }

    /// How long the change took, without the derivations.
    public var duration: Duration { rekey.duration }
}
