import CSQLCipher

/// The SQLCipher library that this process runs on.
public enum Engine {
    /// The version and abilities of the linked library, determined once per process at run time.
    public struct Capabilities: Sendable {
        /// SQLite's version, such as `3.46.1`.
        public let sqliteVersion: String
        /// SQLCipher's version as it reports it, such as `3.4.1` or `4.6.1 community`.
        public let cipherVersion: String
        /// The number before the first dot of `cipherVersion`.
        public let cipherMajorVersion: Int

        /// Whether the library reads and writes files of this profile.
        ///
        /// SQLCipher 3 knows HMAC-SHA1 only, so `.sqlcipher4` needs SQLCipher 4, whatever its
        /// page size.
        public func supports(_ profile: CipherProfile) -> Bool {
            cipherMajorVersion >= 4 || profile.hash == .sha1
        }

        /// The profile of new stores: `.sqlcipher4` on SQLCipher 4, `.portable` on SQLCipher 3.
        public var defaultProfile: CipherProfile {
            cipherMajorVersion >= 4 ? .sqlcipher4 : .portable
        }

        /// A sentence about the engine's age if a reader should know it; otherwise `nil`.
        public var ageNotice: String? {
            guard cipherMajorVersion < 4 else { return nil }
            return "SQLCipher \(cipherVersion) with SQLite \(sqliteVersion) is of 2016 and gets "
                + "no more fixes; install SQLCipher 4 where you can"
        }
    }

    /// The capabilities of the linked library.
    ///
    /// The first use also sets up the library, for its other users in the process as well. It
    /// switches off memory statistics, which cost a mutex at each allocation, and the memory that
    /// each connection would begin with, 400 kB on SQLCipher 3. If the program has initialized the
    /// library before, its setup stays as it is.
    ///
    /// - Throws: `StoreError` `.engine` if the library is not SQLCipher, was built without
    ///   threads, or is not the version that Coffer was compiled for.
    public static var capabilities: Capabilities {
        get throws(StoreError) { try probed.get() }
    }

    /// Whether an interrupt ends `integrity_check`. That of SQLite 3.15.2 first reads all trees;
    /// that of 3.46.1 ends at once.
    static var endsIntegrityCheck: Bool { sqlite3_libversion_number() >= 3_046_000 }

    private static let probed: Result<Capabilities, StoreError> = Result { () throws(StoreError) in
        try probe()
    }

    private static func probe() throws(StoreError) -> Capabilities {
        // A shared build folder relinks without recompiling: the two versions may differ.
        guard SQLITE_VERSION_NUMBER == sqlite3_libversion_number() else {
            throw StoreError(
                .engine,
                "compiled for SQLite \(SQLITE_VERSION), but running on "
                    + String(cString: sqlite3_libversion()),
                hint: "Clean the build folder and build again, or fix the library path.")
        }
        guard sqlite3_threadsafe() != 0 else {
            throw StoreError(.engine, "this SQLCipher was built without support for threads")
        }
        // Avoids a process-wide mutex for every allocation: a sixteenth of the cost of an insert.
        _ = coffer_stop_memory_statistics()
        // Without it, a connection begins with 100 pages on SQLCipher 3, and with 20 on 4.
        // > If pMem is NULL and N is non-zero, then each database connection does an initial bulk
        // > allocation for page cache memory from sqlite3_malloc() sufficient for N cache lines
        // https://www.sqlite.org/c3ref/c_config_covering_index_scan.html#sqliteconfigpagecache
        _ = coffer_take_page_memory_singly()
        let memory = try Handle(path: ":memory:", flags: SQLITE_OPEN_READWRITE)
        // Plain SQLite ignores the pragma and returns no row.
        guard let version = try memory.firstText("PRAGMA cipher_version"), !version.isEmpty else {
            throw StoreError(
                .engine, "the linked SQLite library is not SQLCipher: it would not encrypt",
                hint: "Link libsqlcipher, and do not load libsqlite3 into the same process.")
        }
        return Capabilities(
            sqliteVersion: String(cString: sqlite3_libversion()),
            cipherVersion: version,
            cipherMajorVersion: Int(version.prefix { $0 != "." }) ?? 0)
    }
}
