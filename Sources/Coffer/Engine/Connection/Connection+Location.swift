#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Connection {
    /// Opens a database in a file, in memory, or a temporary one.
    ///
    /// ```swift
    /// let scratch = try Connection(.memory)
    /// let notes = try Connection(.uri("file:notes.db?mode=ro"), key: .passphrase(text))
    /// ```
    ///
    /// - Parameters:
    ///   - location: The place of the database.
    ///   - key: The key of a file. A database in memory or a temporary one takes none: it gets a
    ///     random key.
    ///   - mode: Whether the file must exist, may be created, or is only read. With `nil` the URI's
    ///     mode applies, or else `.createIfMissing`.
    ///   - configuration: How to open it.
    /// - Throws: As `setKey(_:)`; `StoreError` `.misuse` for a file without a key, a key without a
    ///   file, or a mode or VFS that contradicts the URI.
    public convenience init(
        _ location: Location, key: borrowing StoreKey? = nil, mode: OpenMode? = nil,
        configuration: Configuration = .init()
    ) throws {
        let (mode, configuration) = try location.resolved(mode, configuration)
        self.init(at: location, mode: mode, configuration: configuration)
        switch key {
        case .some(let key):
            guard case .file = location.kind else {
                throw StoreError(.misuse, "a database without a file takes no key")
            }
            try setKey(key)
        case .none:
            if case .file = location.kind {
                throw StoreError(.misuse, "a file opens with a key", hint: "Give the key as well.")
            }
            try openPrivate()
        }
    }

    /// Opens the file that a URL names, with its key.
    ///
    /// - Throws: As `setKey(_:)`; `StoreError` `.misuse` if it is not the URL of a file.
    public convenience init(
        url: URL, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) throws {
        try self.init(.url(url), key: key.copy(), mode: mode, configuration: configuration)
    }
}
