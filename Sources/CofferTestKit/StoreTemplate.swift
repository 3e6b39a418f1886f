import Coffer
import Foundation

/// A store that is filled once, and copied for each test.
///
/// ```swift
/// static let template = Result {
///     try StoreTemplate { store in
///         try store.migrate(migrations)
///         try store.write { tx in try tx.insert(fixtures) }
///     }
/// }
///
/// @Test func `a note is found`() throws {
///     let copy = try Self.template.get().copy()
///     #expect(try copy.store.read { tx in try tx.count(Note.all) } == 3)
/// }
/// ```
///
/// The key is random and raw, so that no opening stretches a passphrase. The copies may be used at
/// once, and outlive the template.
public final class StoreTemplate: Sendable {
    private let folder: TemporaryFolder
    private let secret = StoreTemplate.randomSecret()
    private let configuration: Configuration

    /// Makes the template.
    ///
    /// - Parameters:
    ///   - configuration: The settings of the template and its copies.
    ///   - fill: Makes the tables and the rows. The store closes afterwards.
    /// - Throws: What `fill` throws; as the opening of a store and `close`.
    public init(
        configuration: Configuration = .init(), _ fill: (Store) throws -> Void
    ) throws {
        folder = try TemporaryFolder()
        self.configuration = configuration
        let store = try Store(
            path: folder.path, key: .raw(secret), configuration: configuration)
        do {
            try fill(store)
        } catch {
            try? store.close()
            throw error
        }
        // The WAL is in the file then.
        try store.close()
    }

    /// Opens a copy of the template.
    ///
    /// - Returns: The copy, which is removed with the last reference to it.
    /// - Throws: Errors of the file system; as the opening of a store.
    /// - Complexity: O(*bytes of the file*).
    public func copy() throws -> TemporaryStore {
        let copy = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
        return try TemporaryStore(copy, secret: secret, configuration)
    }

    static func randomSecret() -> [UInt8] {
        StoreKey.random().withBytes { Array($0) }
    }
}
