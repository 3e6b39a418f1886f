import CSQLCipher

/// Finds out whether a page failed authentication since the transaction began.
///
/// When the MAC of an overflow page is wrong, both engines return zeros with success. This affects
/// more than the long value: for a column next to it, `SELECT flag` and `count(*) WHERE flag = 7`
/// are wrong too. A read of the schema exposes the failure (result code 1) and costs 0.45 µs, but
/// only while the transaction is open: its end forgets the failure. `PRAGMA schema_version` does
/// not show it.
enum Probe {
    static let sql = "SELECT 1 FROM main.sqlite_master LIMIT 1"

    static func damaged(sql: String?) -> StoreError {
        StoreError(
            .damaged, "a page that was read failed authentication, so the result is withheld",
            hint: "Rows on other pages can still be read; restore the file from a backup.",
            sql: sql)
    }
}

/// What a handle keeps for its probes.
struct Probing {
    /// Compiled at the first probe and kept: it runs once in every transaction.
    var statement: OpaquePointer?
    /// The number of pages read into the cache when the last probe found nothing wrong.
    var cleanMissCount: Int32?
}

extension Handle {
    /// The error to throw instead of handing out what the open transaction has read; `nil` if the
    /// MAC of every page that it read fits.
    ///
    /// The error is `.damaged` if the MAC of a page does not fit. It is `.closed` on a closed
    /// handle, and `.busy` if a file that is read without locks has changed. It is also any error
    /// of reading the schema of the main or an attached file.
    ///
    /// A page can only fail when it is read into the cache. If no page was read since the last
    /// clean probe, another probe would find nothing. Counting costs a twentieth of probing.
    @inline(__always)
    func probeFailure() -> StoreError? {
        if !isClosed, probing.cleanMissCount == coffer_cache_miss_count(db) { return nil }
        return unknownFailure()
    }

    @inline(never)
    private func unknownFailure() -> StoreError? {
        guard !isClosed else { return Connection.closed }
        if let failure = schemaReadFailure() ?? attachedReadFailure() ?? rest?.failure() {
            return failure
        }
        // The count falls when the owner of an adopted handle detaches a file.
        probing.cleanMissCount = rest == nil && !isAdopted ? coffer_cache_miss_count(db) : nil
        return nil
    }

    /// The error of reading the main file's schema now; `nil` if it can be read.
    ///
    /// The error is `.damaged` if a page that the open transaction has read failed: the schema is
    /// then suspect too. The read also notices that another connection changed the schema.
    func schemaReadFailure() -> StoreError? {
        authorizer.asCoffer {
            if probing.statement == nil {
                var raw: OpaquePointer?
                sqlite3_prepare_v2(db, Probe.sql, -1, &raw, nil)
                probing.statement = raw
            }
            guard let statement = probing.statement else { return error(sqlite3_errcode(db)) }
            return failure(of: statement).map(namingPages)
        }
    }

    /// Adds the attached database of this name to `attached`, and checks its schema. Every later
    /// `probeFailure()` covers the database too.
    ///
    /// - Throws: `.damaged` if the MAC of a page of its schema does not fit. The database is in
    ///   `attached` even so, and the connection cannot be used as long as it is attached. If its
    ///   statements do not compile, the error of that: the database is then not in `attached`.
    func probeAttached(_ name: String) throws(StoreError) {
        let quoted = try name.quotedIdentifier()
        let version = try compiled("PRAGMA \(quoted).schema_version")
        let probe: OpaquePointer
        do throws(StoreError) {
            probe = try compiled("SELECT 1 FROM \(quoted).sqlite_master LIMIT 1")
        } catch {
            sqlite3_finalize(version)
            throw error
        }
        attached.append(AttachedSchema(name: name, probe: probe, version: version))
        try ZeroPageCheck.install(on: self, schema: name)
        // ATTACH has loaded the schema in an internal transaction of SQLite.
        sqlite3_db_release_memory(db)
        try requireAuthenticSchema()
        try ZeroPageCheck.removeIfAutoVacuum(on: self, schema: name)
    }

    private func compiled(_ sql: String) throws(StoreError) -> OpaquePointer {
        var raw: OpaquePointer?
        let code = authorizer.asCoffer { coffer_prepare_persistent(db, sql, -1, &raw, nil) }
        guard code == SQLITE_OK, let raw else { throw error(code) }
        return raw
    }

    func forgetProbe(of name: String) {
        guard let index = attached.firstIndex(where: { $0.name.isSameIdentifier(as: name) })
        else { return }
        attached.remove(at: index).finalize()
    }

    /// The names of the attached databases, in order.
    var attachedNames: [String] { attached.map(\.name) }

    /// The error of reading the schema of an attached database now; `nil` if all can be read.
    ///
    /// The error is `.damaged` if a page that the open transaction has read from it failed. On an
    /// adopted handle, databases that the owner has detached do not count. `schemaReadFailure()`
    /// covers only the main file.
    func attachedReadFailure() -> StoreError? {
        guard !attached.isEmpty, let failure = firstAttachedFailure() else { return nil }
        guard isAdopted, (try? followOwner()) != nil else { return failure }
        // The owner may have detached the file.
        return firstAttachedFailure()
    }

    private func firstAttachedFailure() -> StoreError? {
        authorizer.asCoffer {
            for schema in attached {
                if let failure = failure(of: schema.probe) { return failure }
            }
            return nil
        }
    }

    private func failure(of probe: OpaquePointer) -> StoreError? {
        let code = sqlite3_step(probe)
        defer { sqlite3_reset(probe) }
        switch code & 0xff {
        case SQLITE_ROW, SQLITE_DONE: return nil
        // The codec fails with 1; a page that it zeroed fails with 11.
        case SQLITE_ERROR, SQLITE_CORRUPT:
            schemaState.isSuspect = true
            return Probe.damaged(sql: nil)
        default: return error(code)
        }
    }
}
