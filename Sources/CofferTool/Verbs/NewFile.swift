import Coffer
import Foundation
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that a verb is about to create.
enum NewFile {
    /// Checked before anybody types a passphrase. The library checks again, without a race.
    static func requireFree(_ path: String) throws {
        // `lstat`, because a link that leads nowhere also takes the path.
        var found = stat()
        guard lstat(path, &found) != 0 else {
            throw ToolError(
                .alreadyExists, "\(path) exists already",
                hint: "An existing file is never overwritten. Name another file or move that one "
                    + "away.")
        }
    }

    /// Checks that the folder of a new file exists.
    static func requireFolder(_ path: String) throws {
        guard isFolder(URL(filePath: path).deletingLastPathComponent().path) else {
            throw ToolError(
                .notFound, "the folder of \(path) does not exist",
                hint: "Create the folder first.")
        }
    }

    static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            && isFolder.boolValue
    }

    /// The names of a store's own files. A new file of such a name would become part of the store.
    static func names(ofStore path: String) -> [String] {
        ["", "-wal", "-journal", "-shm", Keyring.fileSuffix].map {
            ReportedPath(path).absolute + $0
        }
    }

    /// Makes the names in the folder of a file durable, as far as the file system does that.
    static func syncFolder(of path: String) {
        let folder = FilePath(URL(filePath: path).deletingLastPathComponent().path)
        guard let descriptor = try? FileDescriptor.open(folder, .readOnly) else { return }
        fsync(descriptor.rawValue)
        try? descriptor.close()
    }

    /// Checks that neither a store nor a keyring has the path. A keyring that somebody else has
    /// put there would give that person every row.
    static func requireFree(forStore path: String) throws {
        try requireFree(path)
        guard try Keyring.exists(for: path) else { return }
        throw ToolError(
            .alreadyExists, "\(path)\(Keyring.fileSuffix) exists already, without its store",
            hint: "Put the store back. If there was none, such as after an interrupted init, move "
                + "the keyring away.")
    }
}
