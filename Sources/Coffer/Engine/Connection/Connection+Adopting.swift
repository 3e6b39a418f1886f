import CSQLCipher

extension Connection {
    /// Shares a database handle that the program has opened and keyed already, such as FMDB's, so
    /// that code moves to Coffer call by call.
    ///
    /// ```swift
    /// let connection = try Connection(adopting: OpaquePointer(database.sqliteHandle))
    /// ```
    ///
    /// The handle stays its owner's: `close()` ends what Coffer made on it and leaves it open. Keep
    /// it open, and on one thread at a time, for as long as the connection lives. Transactions are
    /// shared too: inside one that the owner has begun, `transaction(_:_:)` is `.misuse`.
    ///
    /// Coffer's own statements are probed and authorized as always. What it sets on files that it
    /// opens itself does not hold here: journal mode, synchronous, busy timeout, foreign keys,
    /// `temp_store`, cache, limits and the defence against hostile schemas are as the owner has set
    /// them. An authorizer of the owner's is replaced until `close()`, and there is none after it.
    /// The key cannot be changed or shown through it, nor the pages copied. What the owner
    /// attaches is probed too: as long as it is attached, each transaction and each new statement
    /// reads the schemas of all files to the last byte. `trace` takes the place of the owner's.
    ///
    /// - Parameters:
    ///   - handle: A `sqlite3 *` of the SQLCipher that this process is linked to; one of another
    ///     copy of SQLite crashes, and nothing can tell.
    ///   - configuration: Only `statementCountMax`, `prepare` and `logger` count.
    /// - Throws: `StoreError` `.wrongKey` if the handle cannot read its file, `.notEncrypted` if
    ///   the file is plaintext or still empty, `.engine` if the library is not SQLCipher; what
    ///   `prepare` throws.
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

extension Handle {
    /// Probes what the owner has attached, and forgets what it has let go.
    func followOwner() throws(StoreError) {
        guard isAdopted else { return }
        let wasCoffer = authorizer.isCoffer
        authorizer.isCoffer = true
        defer { authorizer.isCoffer = wasCoffer }
        var names = try databaseNames()
        for name in attachedNames where !names.contains(name) {
            forgetProbe(of: name)
            namesToDetach.removeAll { $0 == name }
        }
        names.removeAll { ["main", "temp"].contains($0) || attachedNames.contains($0) }
        for name in names { try probeAttached(name) }
        // The owner loads a schema by itself, in no transaction of Coffer's: one that has changed,
        // and that of a file. No number tells a file from another one of that name before it.
        let ownersNames = attachedNames.filter { !namesToDetach.contains($0) }
        guard let verifiedSchemaVersion else { return }
        let isKnown = try schemaVersion() == verifiedSchemaVersion && !isSchemaSuspect
        if !isKnown || !ownersNames.isEmpty { try verifySchema(checkingFilesOf: ownersNames) }
    }

    /// Asked without the read locks that compiling takes, some of which may be of files that went.
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

    /// - Throws: `.wrongKey`, `.damaged` if the schema cannot be read, `.notEncrypted` if the file
    ///   is, or with its first page would become, plaintext. A database without a file is let pass.
    fileprivate func requireEncrypted() throws(StoreError) {
        let path = sqlite3_db_filename(db, "main").map { String(cString: $0) } ?? ""
        try ZeroPageCheck.install(on: self)
        // What the owner has read was judged by nobody.
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
