import Coffer
import Foundation

/// A file that a verb is about to make.
enum NewFile {
    /// Asked before anybody types a passphrase; the library refuses once more, without a race.
    static func requireFree(_ path: String) throws {
        guard !FileManager.default.fileExists(atPath: path) else {
            throw ToolError(
                .failure, "\(path) exists already",
                hint: "nothing is ever written over: name another file or move that one away")
        }
    }
}
