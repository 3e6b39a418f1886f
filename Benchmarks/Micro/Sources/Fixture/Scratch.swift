public import Coffer
import Foundation

/// Files that exist for one iteration of a benchmark, so that none meets another's leftovers.
public enum Scratch {
    /// The key and the salt: nothing is derived.
    public static let rawKey = [UInt8](0..<48)

    /// Commits are not synced, because Coffer is measured and not the disk.
    private static let configuration: Configuration = {
        var configuration = Configuration()
        configuration.durability = .process
        return configuration
    }()

    /// Lends a path in a folder that is removed afterwards.
    public static func withPath(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "coffer-micro-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.appending(path: "notes.db").path)
    }

    /// Lends a store that `fill` has filled.
    public static func withStore(
        fill: (inout WriteTransaction) throws -> Void, body: (Store) throws -> Void
    ) throws {
        try withPath { path in
            try self.fill(path, fill)
            let store = try openStore(path)
            try body(store)
            try store.close()
        }
    }

    /// Lends a connection to a file with these rows in the table `note`.
    public static func withConnection(
        notes: [Note] = [], _ body: (Connection) throws -> Void
    ) throws {
        try withPath { path in
            try fill(path) { tx in
                try tx.create(Note.self)
                try tx.insert(notes)
            }
            let connection = try openConnection(path)
            try body(connection)
            connection.close()
        }
    }

    /// Makes a file; closing the store leaves all of it in there, and nothing in a WAL.
    public static func fill(
        _ path: String, key: consuming StoreKey = .raw(rawKey),
        _ body: (inout WriteTransaction) throws -> Void
    ) throws {
        let store = try openStore(path, key: key)
        try store.write(body)
        try store.close()
    }

    public static func openStore(
        _ path: String, key: consuming StoreKey = .raw(rawKey)
    ) throws -> Store {
        try Store(path: path, key: key, configuration: configuration)
    }

    public static func openConnection(
        _ path: String, key: consuming StoreKey = .raw(rawKey)
    ) throws -> Connection {
        try Connection(path: path, key: key, configuration: configuration)
    }
}
