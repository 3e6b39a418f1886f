import Coffer
import Foundation

/// A store in a folder of its own, which goes away with the last reference to this or to the store.
///
/// ```swift
/// let copy = try template.copy()
/// try copy.store.write { tx in try tx.insert(note) }
/// ```
public final class TemporaryStore: Sendable {
    /// The open store.
    public let store: Store
    /// The path of its file.
    public let path: String
    private let folder: TemporaryFolder
    private let secret: [UInt8]

    /// Makes an empty store with a random key.
    ///
    /// - Parameter configuration: The settings of the store.
    /// - Throws: As the opening of a store.
    public convenience init(configuration: Configuration = .init()) throws {
        try self.init(
            TemporaryFolder(), secret: StoreTemplate.randomSecret(), configuration)
    }

    init(
        _ folder: TemporaryFolder, secret: [UInt8], _ configuration: Configuration
    ) throws {
        (self.folder, self.secret) = (folder, secret)
        path = folder.path
        var configuration = configuration
        let prepare = configuration.prepare
        // The store keeps the folder too, for a caller that keeps the store alone.
        configuration.prepare = { [folder] connection in
            try withExtendedLifetime(folder) { try prepare?(connection) }
        }
        store = try Store(path: path, key: .raw(secret), configuration: configuration)
    }

    /// The key of the file, to open it once more after `store.close()`.
    public var key: StoreKey { .raw(secret) }
}

/// A folder that is removed with the last reference to it.
final class TemporaryFolder: Sendable {
    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "coffer-test-\(UUID())")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
    }

    var path: String { path("store.db") }

    func path(_ name: String) -> String { url.appending(path: name).path }

    deinit { try? FileManager.default.removeItem(at: url) }
}
