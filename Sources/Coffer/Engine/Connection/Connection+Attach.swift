import CSQLCipher
import Synchronization

extension Connection {
    /// Attaches another encrypted file under a name, so that SQL can use both.
    ///
    /// ```swift
    /// try connection.attach("archive.db", as: "archive", key: .passphrase(text))
    /// try connection.execute("INSERT INTO archive.note SELECT * FROM note WHERE old")
    /// ```
    ///
    /// Coffer checks the pages read from the file as it checks those of the main file. The file
    /// must exist, and keeps its journal mode. A transaction over two files survives a process
    /// crash as a whole only if both have a rollback journal. With a WAL, one file may keep its
    /// changes while the other loses them. See <https://www.sqlite.org/lang_attach.html>.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - name: Its name in SQL; not `main`, `temp`, or the name of another attached file.
    ///   - key: The file's key.
    /// - Throws: `StoreError` `.notFound` if there is no file; `.wrongKey`, `.notEncrypted`,
    ///   `.damaged` and other errors of `setKey(_:)`; `.sql` for an empty name or one with NUL;
    ///   `.misuse` for a name in use, for a file that this connection already has, inside a
    ///   transaction, and while a statement has a current row. The file is then not attached.
    /// - Warning: A file whose page size or rounds differ from the engine's defaults needs other
    ///   `cipher_default_*` settings until ATTACH is done. They belong to the process. If another
    ///   library of the process gives a file its key by SQLCipher itself at that moment, it gets
    ///   these settings. Attach when no such library opens files.
    /// - Note: The corresponding SQL is `ATTACH`, with the key as a bound value.
    public func attach(_ path: String, as name: String, key: borrowing StoreKey) throws {
        let handle = try requireNoTransaction()
        _ = try name.quotedIdentifier()
        guard !isSchema(name, of: handle) else {
            throw StoreError(.misuse, "a schema of that name is attached already")
        }
        let file = try FileLocation(path)
        try requireOther(file, than: handle)
        var configuration = configuration
        configuration.profile = nil
        configuration.journalMode = .existing
        // Reports what is wrong with the file or its key; ATTACH itself would not.
        let opened = try Opening(
            path: file.path, mode: mode == .readOnly ? .readOnly : .mustExist,
            configuration: configuration, cacheByteCount: 0
        ).open(key: key)
        // Until the engine has opened the WAL next to it, the file keeps its path.
        defer { opened.handle.close() }
        if opened.handle.rest == nil {
            try opened.handle.lockNamedFile(file, patience: configuration.busyTimeout)
        }
        try Attachment(name: name, file: file, profile: opened.profile)
            .attach(to: handle, key: opened.key)
        do throws(StoreError) {
            try configureAttached(name, handle)
        } catch {
            try? Attachment.detach(name, from: handle)
            throw error
        }
        forgetAttachments()
    }

    /// Detaches an attached file.
    ///
    /// - Throws: `StoreError` `.notFound` if no file is attached under that name; `.misuse` inside
    ///   a transaction and while a statement has a current row.
    /// - Note: The corresponding SQL is `DETACH`.
    public func detach(_ name: String) throws {
        let handle = try requireNoTransaction()
        guard handle.attachedNames.contains(where: { $0.isSameIdentifier(as: name) }) else {
            throw StoreError(.notFound, "no file is attached under that name")
        }
        forgetAttachments()
        try Attachment.detach(name, from: handle)
    }

    /// The names of the attached files, in the order in which they were attached.
    public var attachedNames: [String] {
        try? handle?.followOwner()
        return handle?.attachedNames ?? []
    }

    // MARK: Inside

    /// Refuses to replace the handle while files are attached, which the new handle would not have.
    ///
    /// - Throws: `.misuse` if a file is attached.
    func requireNothingAttached() throws(StoreError) {
        guard attachedNames.isEmpty else {
            throw StoreError(
                .misuse, "files are attached, and this would detach them",
                hint: "Detach them first."
            )
        }
    }

    private func isSchema(_ name: String, of handle: Handle) -> Bool {
        (["main", "temp"] + handle.attachedNames).contains { $0.isSameIdentifier(as: name) }
    }

    /// Refuses a file that the connection has open as its main file or as an attached one, under
    /// whatever path: the two would lock each other out.
    ///
    /// - Throws: `.misuse` for such a file; `.notFound` if there is no file.
    private func requireOther(_ file: FileLocation, than handle: Handle) throws(StoreError) {
        guard case .file(_, let identity) = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        for name in ["main"] + handle.attachedNames {
            guard let known = sqlite3_db_filename(handle.db, name).map({ String(cString: $0) }),
                !known.isEmpty, case .file(_, identity) = try FileLocation(known).status()
            else { continue }
            throw StoreError(.misuse, "the connection has \(file.path) open already")
        }
    }

    private func configureAttached(_ name: String, _ handle: Handle) throws(StoreError) {
        let quoted = try name.quotedIdentifier()
        // As `PhysicalOpen` does for the main file; with a WAL, EXTRA is the same as FULL.
        let isWAL = try handle.firstText("PRAGMA \(quoted).journal_mode") == "wal"
        let isRelaxed = isWAL && configuration.durability == .process
        try handle.run("PRAGMA \(quoted).synchronous = \(isRelaxed ? "NORMAL" : "EXTRA")")
        try handle.setCacheByteCount(cacheByteCount, schema: quoted)
    }
}

/// Attaches one file.
///
/// ATTACH reads the schema at once, so the cipher settings must be correct before it. Only the
/// engine's process-wide defaults can provide them. Coffer's own connections set all of them after
/// their key, so changed defaults do not affect them.
struct Attachment {
    let name: String
    let file: FileLocation
    let profile: CipherProfile

    /// Only one thread at a time may change the defaults, because they belong to the process.
    static let defaults = Mutex(())

    func attach(to handle: Handle, key: borrowing RawKey) throws(StoreError) {
        let settings = try self.settings()
        let count = Int32(handle.attachedNames.count)
        // One more for VACUUM, which attaches its copy.
        let limit = sqlite3_limit(handle.db, SQLITE_LIMIT_ATTACHED, -1)
        sqlite3_limit(handle.db, SQLITE_LIMIT_ATTACHED, max(limit, count + 2))
        let code = try Self.defaults.withLock { _ throws(StoreError) -> Int32 in
            var old: [(String, String)] = []
            for (setting, value) in settings {
                let current = try handle.firstText("PRAGMA \(setting)") ?? ""
                if current != value { old.append((setting, current)) }
            }
            defer {
                for (setting, value) in old { try? handle.run("PRAGMA \(setting) = \(value)") }
            }
            for (setting, value) in settings where old.contains(where: { $0.0 == setting }) {
                try handle.run("PRAGMA \(setting) = \(value)")
            }
            return run(on: handle, key)
        }
        guard code == SQLITE_OK else { throw handle.error(code) }
        do throws(StoreError) {
            try handle.probeAttached(name)
            if handle.isAdopted { handle.adoption?.namesToDetach.append(name) }
        } catch {
            // A file that nobody probes must not stay attached.
            try? Self.detach(name, from: handle)
            throw error
        }
    }

    static func detach(_ name: String, from handle: Handle) throws(StoreError) {
        handle.forgetProbe(of: name)
        handle.adoption?.namesToDetach.removeAll { $0.isSameIdentifier(as: name) }
        try handle.run("DETACH \(try name.quotedIdentifier())")
    }

    private func settings() throws(StoreError) -> [(String, String)] {
        let common = [
            ("cipher_default_page_size", "\(profile.pageByteCount)"),
            ("cipher_default_kdf_iter", "\(profile.roundCount)"),
        ]
        guard try Engine.capabilities.cipherMajorVersion >= 4 else { return common }
        let hash = profile.hash == .sha512 ? "SHA512" : "SHA1"
        return common + [
            ("cipher_default_hmac_algorithm", "HMAC_\(hash)"),
            ("cipher_default_kdf_algorithm", "PBKDF2_HMAC_\(hash)"),
        ]
    }

    /// Runs ATTACH, and returns `SQLITE_OK` or the engine's code. The key is bound, never SQL text,
    /// and is forgotten with the statement.
    private func run(on handle: Handle, _ key: borrowing RawKey) -> Int32 {
        let path = file.path
        let name = name
        return key.withKeyText { text in
            handle.authorizer.asCoffer {
                var statement: OpaquePointer?
                let code = sqlite3_prepare_v2(
                    handle.db, "ATTACH ?1 AS ?2 KEY ?3", -1, &statement, nil)
                guard code == SQLITE_OK else { return code }
                sqlite3_bind_text(statement, 1, path, -1, coffer_transient())
                sqlite3_bind_text(statement, 2, name, -1, coffer_transient())
                // Not copied: the bytes are wiped when this returns, after the statement is gone.
                sqlite3_bind_blob(statement, 3, text.baseAddress, Int32(text.count), nil)
                let result = sqlite3_step(statement)
                sqlite3_finalize(statement)
                return result == SQLITE_DONE ? SQLITE_OK : result
            }
        }
    }
}
