import CSQLCipher

extension Connection {
    /// Shares a database handle that the program has already opened and keyed, such as FMDB's, so
    /// that code can move to Coffer call by call.
    ///
    /// ```swift
    /// let connection = try Connection(adopting: OpaquePointer(database.sqliteHandle))
    /// ```
    ///
    /// The handle still belongs to its owner: `close()` ends Coffer's statements on it and leaves
    /// it open. Keep it open while the connection lives, and use it from one thread at a time.
    /// Transactions are shared too: inside one that the owner has begun, `transaction(_:_:)` throws
    /// `.misuse`.
    ///
    /// Coffer checks the SQL and the pages of its own statements as always. Unlike on files that it
    /// opens itself, it leaves these settings as the owner made them: journal mode, synchronous,
    /// busy timeout, foreign keys, `temp_store`, cache, limits and the defence against hostile
    /// schemas. Coffer replaces the owner's authorizer until `close()`; after that the handle has
    /// none. `trace` replaces the owner's trace. The key cannot be changed or shown through the
    /// connection, nor the pages copied. Coffer also checks the pages of files that the owner
    /// attaches: while one is attached, each transaction and each new statement reads the schemas
    /// of all files to the last byte.
    ///
    /// On SQLCipher 4 a rollback of the owner's without WAL may leave page 1 misread, rarely: reads
    /// then report damage until the owner calls `sqlite3_db_release_memory`. Coffer calls it after
    /// its own rollbacks.
    ///
    /// - Parameters:
    ///   - handle: A `sqlite3 *` of the SQLCipher that this process is linked to. A handle of
    ///     another copy of SQLite crashes, and nothing can detect that.
    ///   - configuration: Only `maximumStatementCount` and `prepare` apply to the handle. Others,
    ///     such as `durability`, apply only to files that `attach(_:as:key:)` opens.
    /// - Throws: `StoreError` `.wrongKey` if the handle cannot read its file, `.notEncrypted` if
    ///   the file is plaintext or still empty, `.engine` if the library is not SQLCipher; errors of
    ///   `prepare`.
    public convenience init(
        adopting handle: OpaquePointer, configuration: Configuration = .init()
    ) throws {
        _ = try Engine.capabilities
        let adopted = Handle(adopting: handle)
        try adopted.requireEncrypted()
        try adopted.followOwner()
        try self.init(adopting: adopted, configuration: configuration)
    }
}

/// What is known about a database that someone else has opened.
final class Adoption {
    /// Databases that Coffer attached, and detaches again.
    var namesToDetach: [String] = []
    /// The version of the schema that was read to its last byte.
    var verifiedSchemaVersion: Int64?
}

extension Handle {
    /// Brings `attached` up to date with the files that the owner of an adopted handle has attached
    /// and detached. Does nothing on a handle that Coffer opened.
    ///
    /// Once the schemas were verified, it reads all of them again if the main file's has changed or
    /// is suspect. While a file of the owner's is attached, it reads them in every call.
    ///
    /// - Throws: `.damaged` if the MAC of a page of a schema does not fit; `.busy` if a lock cannot
    ///   be taken.
    func followOwner() throws(StoreError) {
        guard isAdopted else { return }
        let wasCoffer = authorizer.isCoffer
        authorizer.isCoffer = true
        defer { authorizer.isCoffer = wasCoffer }
        var names = try databaseNames()
        for name in attachedNames where !names.contains(name) {
            forgetProbe(of: name)
            adoption?.namesToDetach.removeAll { $0 == name }
        }
        names.removeAll { ["main", "temp"].contains($0) || attachedNames.contains($0) }
        for name in names { try probeAttached(name) }
        // The owner may load a schema outside Coffer's transactions: a changed one, or that of a
        // newly attached file. No number distinguishes a file from an earlier one of the same name.
        let ownersNames = attachedNames.filter { !(adoption?.namesToDetach.contains($0) ?? false) }
        guard let verifiedVersion = adoption?.verifiedSchemaVersion else { return }
        let isKnown = try schemaVersion() == verifiedVersion && !schemaState.isSuspect
        if !isKnown || !ownersNames.isEmpty { try verifySchema(checkingFilesOf: ownersNames) }
    }

    /// The names of all databases of the handle, with `main` and, if it exists, `temp`. Takes no
    /// read locks of files in `attached`: some may be detached. Throws the engine's error.
    private func databaseNames() throws(StoreError) -> [String] {
        var list: OpaquePointer?
        defer { sqlite3_finalize(list) }
        var code = sqlite3_prepare_v2(db, "PRAGMA database_list", -1, &list, nil)
        if code == SQLITE_OK { code = sqlite3_step(list) }
        var names: [String] = []
        while code == SQLITE_ROW {
            names.append(sqlite3_column_text(list, 1).map { String(cString: $0) } ?? "")
            code = sqlite3_step(list)
        }
        guard code == SQLITE_DONE else { throw error(code) }
        return names
    }

    /// Checks that the main file's schema can be read and that the file is encrypted.
    ///
    /// - Throws: `.wrongKey`, `.damaged` if the schema cannot be read; `.notEncrypted` if the file
    ///   is plaintext, or would become plaintext with its first page. A database without a file
    ///   passes.
    fileprivate func requireEncrypted() throws(StoreError) {
        let path = sqlite3_db_filename(db, "main").map { String(cString: $0) } ?? ""
        try ZeroPageCheck.install(on: self)
        // Drops the pages that the owner has read: nothing checked them.
        sqlite3_db_release_memory(db)
        try verifySchema()
        guard !path.isEmpty else { return }
        guard let start = try rawBytes(at: 0, count: RawKey.saltByteCount) else {
            throw StoreError(
                .notEncrypted, "\(path) is empty, so nothing shows that it will be encrypted",
                hint: "Let the owner of the handle write to it first.")
        }
        // With this setting of SQLCipher 4 the first bytes of an encrypted file are plaintext.
        let hasPlaintextHeader = try firstInteger("PRAGMA cipher_plaintext_header_size") > 0
        guard hasPlaintextHeader || !FirstBytes.isPlaintext(start) else {
            throw StoreError(
                .notEncrypted, "\(path) is a plaintext SQLite database",
                hint: "No key opens it: copy it into a new store with Store.encrypt.")
        }
        try ZeroPageCheck.removeIfAutoVacuum(on: self)
    }
}
