import CSQLCipher
import Foundation

@testable import Coffer

// nonisolated(unsafe): this program has one thread.
nonisolated(unsafe) private var oldFile: (url: URL, bytes: Data)?
nonisolated(unsafe) private var changedOpenCount = 0

/// Changes the key of a file that is as it was before as soon as the new key has opened it: as on a
/// disk that brings an older state back, or if somebody restores a copy at that moment.
///
/// What the engine calls for each file that it opens brings the file back, when the changed file
/// is opened for the second time. The connections hold no locks then that a descriptor would drop.
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
