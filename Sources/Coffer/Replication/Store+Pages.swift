import CSQLCipher

extension Store {
    /// Runs `body` with all pages of the store as of one moment.
    ///
    /// The content of that moment survives a loss of power: the WAL is synced first. Reads and
    /// writes go on meanwhile; without WAL, writes wait.
    ///
    /// - Throws: What `body` throws; `.busy` if commits follow each other too fast to find a moment
    ///   between two; `.unsupported` for a store without a file; otherwise as `read`.
    package func withPages<T>(
        _ cancellation: Cancellation? = nil, _ body: (borrowing PageSnapshot) throws -> T
    ) throws -> T {
        guard core.pool.file != nil else {
            throw StoreError(.unsupported, "a store in memory has no pages")
        }
        for _ in 0..<Self.momentTryCount {
            let result = try core.read(cancellation: cancellation) { tx -> T? in
                let connection = try tx.connection()
                let open = try connection.fileState()
                let log = core.pool.journalMode == .wal ? WALFile(handle: open.handle) : nil
                let before = try log?.index()
                // Fixes what the transaction sees.
                _ = try connection.firstRow(SQL(text: Probe.sql), isReadOnly: true)
                let index = try log?.index()
                guard index == before else { return nil }
                if log != nil { try Self.syncWAL(open.handle) }
                return try body(PageSnapshot(open, index))
            }
            if let result { return result }
        }
        throw StoreError(
            .busy, "other connections commit without a pause", hint: "Try again.")
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
