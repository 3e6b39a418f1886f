import CSQLCipher

/// The SQLCipher library that this process runs on.
public enum Engine {
    /// What the linked library is and can do; asked once per process, at run time.
    public struct Capabilities: Sendable {
        /// SQLite's version, such as `3.46.1`.
        public let sqliteVersion: String
        /// SQLCipher's version as it tells it, such as `3.4.1` or `4.6.1 community`.
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

        /// A sentence on the engine's age where a reader should know it, else `nil`.
        public var ageNotice: String? {
            guard cipherMajorVersion < 4 else { return nil }
            return "SQLCipher \(cipherVersion) with SQLite \(sqliteVersion) is of 2016 and gets "
                + "no fixes any more; install SQLCipher 4 where you can"
        }
    }

    /// The capabilities of the linked library.
    ///
    /// Asked first, it also sets up the library: without statistics of memory, which cost a mutex
    /// at each allocation. What the program has set up before stays as it is.
    ///
    /// - Throws: `StoreError` `.engine` if the library is not SQLCipher, was built without
    ///   threads, or is not the version that Coffer was compiled for.
    public static var capabilities: Capabilities {
        get throws(StoreError) { try probed.get() }
    }

    private static let probed: Result<Capabilities, StoreError> = Result { () throws(StoreError) in
        try probe()
    }

    private static func probe() throws(StoreError) -> Capabilities {
        // A shared build folder relinks without compiling again: the two may differ.
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
        // A process-wide mutex for every allocation: a sixteenth of the cost of an insert.
        _ = coffer_stop_memory_statistics()
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
