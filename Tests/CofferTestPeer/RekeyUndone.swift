import CSQLCipher
import Foundation

@testable import Coffer

// nonisolated(unsafe): this program has one thread.
nonisolated(unsafe) private var oldFile: (url: URL, bytes: Data)?
nonisolated(unsafe) private var changedOpenCount = 0

/// Changes the key of a file whose old content comes back as soon as the new key has opened it, as
/// on a disk that restores an older state, or if somebody restores a copy at that moment.
///
/// SQLite calls a function for each file that it opens. When it opens the changed file for the
/// second time, the function writes the old content back. The connections hold no locks then that a
/// descriptor would drop.
func rekeyUndone(_ connection: Connection, at path: String, to key: consuming StoreKey) -> String {
    let url = URL(filePath: path)
    guard let bytes = try? Data(contentsOf: URL(filePath: path + ".before")) else {
        return "no copy of the file"
    }
    oldFile = (url, bytes)
    typealias EntryPoint =
        @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, UnsafeRawPointer?) -> Int32
    let entry: EntryPoint = { _, _, _ in
        guard let oldFile, (try? Data(contentsOf: oldFile.url)) != oldFile.bytes else { return 0 }
        changedOpenCount += 1
        guard changedOpenCount == 2, let file = try? FileHandle(forWritingTo: oldFile.url) else {
            return 0
        }
        defer { try? file.close() }
        try? file.write(contentsOf: oldFile.bytes)
        return 0
    }
    sqlite3_auto_extension(unsafeBitCast(entry, to: (@convention(c) () -> Void).self))
    do {
        try connection.rekey(to: key)
        return "rekeyed"
    } catch let error as StoreError {
        return "\(error.code)"
    } catch {
        return "unexpected \(error)"
    }
}
