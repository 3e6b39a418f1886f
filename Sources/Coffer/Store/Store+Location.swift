#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Stores that are not named by the path of a file.
extension Store {
    /// Opens a store in memory or a temporary one, or in a file.
    ///
    /// ```swift
    /// let scratch = try Store(.memory)
    /// ```
    ///
    /// A store in memory starts empty, shares its contents with no other store, and is gone after
    /// `close()` or when it is released. Everything works as in a file, except:
    ///
    /// - It has one connection. Reads and writes run one at a time, and a read sees all earlier
    ///   writes.
    /// - Returned means applied; nothing outlives the store. `backup(to:key:progress:)` copies it
    ///   into a file, under a key that you must give.
    /// - `verify(_:progress:)` checks only the structure, because there are no pages on a disk.
    /// - `snapshot()`, `suspend()`, `rekey(to:)` and `reopen(with:)` throw `.unsupported`,
    ///   and the store goes on.
    ///
    /// - Parameters:
    ///   - location: Where the database is.
    ///   - key: The key of a file. A store without a file takes none: it has a random key.
    ///   - mode: What to do about the file's existence; `nil` for what the URI says, else
    ///     `.createIfMissing`.
    ///   - configuration: How to open it. A store without a file ignores settings for files and
    ///     readers.
    /// - Throws: As the initialiser with a path; `StoreError` `.misuse` for a file without a key, a
    ///   key without a file, or a mode or VFS that contradicts the URI.
    public convenience init(
        _ location: Location, key: borrowing StoreKey? = nil, mode: OpenMode? = nil,
        configuration: Configuration = .init()
    ) throws {
        self.init(
            core: try StoreCore.at(location, key: key, mode: mode, configuration: configuration))
    }

    /// Opens a store in memory or a temporary one, or in a file, without blocking a thread of the
    /// cooperative pool.
    ///
    /// - Parameters:
    ///   - location: Where the database is.
    ///   - key: The key of a file; `nil` for a store without a file.
    ///   - mode: What to do about the file's existence; `nil` for what the URI says, else
    ///     `.createIfMissing`.
    ///   - configuration: How to open it.
    /// - Throws: As the synchronous initialiser.
    public convenience init(
        _ location: Location, key: borrowing StoreKey? = nil, mode: OpenMode? = nil,
        configuration: Configuration = .init()
    ) async throws {
        let key = KeyBox(key.copy())
        self.init(
            core: try await Self.offPool { () throws(StoreError) in
                try StoreCore.at(location, key: key.key, mode: mode, configuration: configuration)
            })
    }

    /// Opens or creates a store in the file that a URL names.
    ///
    /// - Throws: As the initialiser with a path; `StoreError` `.misuse` if `url` does not name a
    ///   file on this machine.
    public convenience init(
        url: URL, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) throws {
        try self.init(
            path: Location.url(url).path, key: key, mode: mode, configuration: configuration)
    }

    /// Opens or creates a store in the file that a URL names, without blocking a thread of the
    /// cooperative pool.
    ///
    /// - Throws: As the synchronous initialiser.
    public convenience init(
        url: URL, key: borrowing StoreKey, mode: OpenMode = .createIfMissing,
        configuration: Configuration = .init()
    ) async throws {
        let path = try Location.url(url).path
        try await self.init(path: path, key: key, mode: mode, configuration: configuration)
    }
}

extension StoreCore {
    fileprivate static func at(
        _ location: Location, key: borrowing StoreKey?, mode: OpenMode?,
        configuration: Configuration
    ) throws(StoreError) -> StoreCore {
        let (mode, configuration) = try location.resolved(mode, configuration)
        switch key {
        case .some(let key):
            guard case .file(let path) = location.kind else {
                throw StoreError(.misuse, "a store without a file takes no key")
            }
            return try StoreCore(path: path, key: key, mode: mode, configuration: configuration)
        case .none:
            if case .file = location.kind {
                throw StoreError(.misuse, "a file opens with a key", hint: "Give the key as well.")
            }
            return try StoreCore(without: location, configuration: configuration)
        }
    }
}
