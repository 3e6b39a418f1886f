import CSQLCipher

extension Store {
    /// Runs `body` with all pages of the store as of one moment.
    ///
    /// The content of that moment survives a loss of power: the WAL is synced first. Reads and
    /// writes go on meanwhile; without WAL, writes wait.
    ///
    /// - Parameter source: The file as it was when the replication began.
    /// - Throws: What `body` throws; `.wrongKey` if the store has got another key since then;
    ///   `.busy` if commits follow each other too fast to find a moment between two; otherwise as
    ///   `read`.
    package func withPages<T>(
        of source: ReplicaSource, _ cancellation: Cancellation? = nil,
        _ body: (borrowing PageSnapshot) throws -> T
    ) throws -> T {
        for _ in 0..<Self.momentTryCount {
            let result = try core.read(cancellation: cancellation) { tx -> T? in
                let connection = try tx.connection()
                let open = try connection.fileState()
                guard source.isUnder(open.key, open.profile), core.pool.file?.hasKeyring == false
                else {
                    throw StoreError(
                        .wrongKey, "\(source.path) has another key than when its replica began",
                        hint: "Give the store a new remote. The replica stays, under the old key.")
                }
                // Not as the store was opened: another program may have changed the mode.
                let log = WALFile(handle: open.handle)
                let before = try Self.index(of: log)
                // Fixes what the transaction sees.
                _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
                let index = try Self.index(of: log)
                guard index == before else { return nil }
                if index != nil { try Self.syncWAL(open.handle) }
                return try body(PageSnapshot(open, index, in: tx.access))
            }
            if let result { return result }
        }
        throw StoreError(
            .busy, "other connections commit without a pause", hint: "Try again.")
    }

    /// The index of the WAL; `nil` without WAL.
    private static func index(of log: WALFile) throws(StoreError) -> WALFile.Index? {
        guard try log.handle.journalMode() == .wal else { return nil }
        guard let index = try log.index() else {
            throw StoreError(.io, "the index of the write-ahead log cannot be read")
        }
        return index
    }

    private static let momentTryCount = 1000

    private static func syncWAL(_ handle: Handle) throws(StoreError) {
        let code = coffer_sync_wal(handle.db)
        guard code == SQLITE_OK || code == SQLITE_NOTFOUND else {
            throw StoreError.of(nil, code: code, sql: nil)
        }
    }

    /// The file that a replica is of.
    ///
    /// - Throws: `.unsupported` for a store without a file, and for one with a keyring.
    package func replicaSource() throws -> ReplicaSource {
        guard let file = core.pool.file else {
            throw StoreError(.unsupported, "a store in memory cannot be replicated")
        }
        guard !file.hasKeyring else {
            throw StoreError(
                .unsupported, "a store with a keyring cannot be replicated yet",
                hint: "Back it up with Store.backup, which copies the keyring too.")
        }
        return ReplicaSource(path: file.location.path, cipher: file.cipher)
    }

    /// Runs work that may take long, on one of Coffer's threads.
    package static func offPool<T: Sendable>(
        cancellable work: @escaping @Sendable (Cancellation) throws -> T
    ) async throws -> T {
        try await cancellableOffPool(work)
    }
}

/// A file and its key, as far as a replica needs them.
package struct ReplicaSource: Sendable {
    package let path: String
    private let cipher: FileCipher

    init(path: String, cipher: FileCipher) {
        (self.path, self.cipher) = (path, cipher)
    }

    /// The salt of the file: 16 bytes, not secret.
    package var salt: [UInt8] { cipher.key.salt }
    /// Whether a file has this key and this profile.
    func isUnder(_ key: borrowing RawKey, _ profile: CipherProfile) -> Bool {
        key.isEqual(to: cipher.key) && profile == cipher.profile
    }

    package var profileName: String { "\(cipher.profile)" }
    package var pageByteCount: Int { cipher.profile.pageByteCount }

    /// The secret from which all keys of a replica are derived.
    package func secret() -> SecretBytes { cipher.key.replicaSecret() }
}

extension RawKey {
    /// The secret from which all keys of a replica are derived: 32 bytes.
    borrowing func replicaSecret() -> SecretBytes {
        bytes.expanded(Array("coffer1 replica".utf8) + salt)
    }
}
