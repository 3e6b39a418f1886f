import CSQLCipher
import Synchronization

/// The library and the settings that encrypt a connection's pages.
public struct CipherInformation: Sendable, Hashable {
    /// SQLCipher's version, such as `3.4.1` or `4.6.1 community`.
    public let version: String
    /// The library that it encrypts with, such as `openssl`.
    public let provider: String
    /// That library's own version.
    public let providerVersion: String
    /// Whether that library runs in its FIPS mode.
    public let isFIPS: Bool
    /// The file's cipher settings.
    public let profile: CipherProfile
}

extension Connection {
    /// The library and the settings that encrypt this connection's pages.
    ///
    /// - Throws: `StoreError` `.misuse` before the key is set, `.unsupported` for an adopted
    ///   handle, `.closed`.
    /// - Note: The corresponding SQL is `PRAGMA cipher_version`, `cipher_provider`,
    ///   `cipher_provider_version` and `cipher_fips_status`.
    public func cipherInformation() throws -> CipherInformation {
        let handle = try current()
        let profile = try ownProfile()
        return CipherInformation(
            version: try handle.firstText("PRAGMA cipher_version") ?? "",
            provider: try handle.firstText("PRAGMA cipher_provider") ?? "",
            providerVersion: try handle.firstText("PRAGMA cipher_provider_version") ?? "",
            isFIPS: try handle.firstInteger("PRAGMA cipher_fips_status") == 1, profile: profile)
    }
}

/// How much SQLCipher 4 writes to standard error.
public enum CipherLogLevel: String, Sendable, CaseIterable {
    /// Nothing: the level that Coffer sets.
    case none = "NONE"
    /// Failures, which include a block of lines for every wrong key.
    case error = "ERROR"
    /// Suspicious conditions as well.
    case warn = "WARN"
    /// Its actions as well.
    case info = "INFO"
    /// Details that help to find an error in SQLCipher.
    case debug = "DEBUG"
    /// Everything.
    case trace = "TRACE"
}

extension Engine {
    private static let logLevel = Mutex(CipherLogLevel.none)

    /// How much SQLCipher writes to standard error, for the whole process.
    public static var cipherLogLevel: CipherLogLevel { logLevel.withLock { $0 } }

    /// Sets how much SQLCipher writes to standard error, for the whole process and at once.
    ///
    /// Its lines name files, pages and reasons, for a report to its developers.
    ///
    /// - Throws: `StoreError` `.unsupported` on SQLCipher 3, which has no log.
    /// - Note: The corresponding SQL is `PRAGMA cipher_log_level`.
    public static func setCipherLogLevel(_ level: CipherLogLevel) throws {
        guard try capabilities.cipherMajorVersion >= 4 else {
            throw StoreError(.unsupported, "SQLCipher 3 has no log: this needs SQLCipher 4")
        }
        // The level belongs to the process, so any connection can set it.
        let handle = try Handle(path: ":memory:", flags: SQLITE_OPEN_READWRITE)
        try logLevel.withLock { current throws(StoreError) in
            try handle.run("PRAGMA cipher_log_level = \(level.rawValue)")
            current = level
        }
    }
}
