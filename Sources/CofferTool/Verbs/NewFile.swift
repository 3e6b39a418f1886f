#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that a verb is about to make.
enum NewFile {
    /// Asked before anybody types a passphrase; the library refuses once more, without a race.
    static func requireFree(_ path: String) throws {
        // `lstat`: a link that leads nowhere is something as well.
        var found = stat()
        guard lstat(path, &found) != 0 else {
            throw ToolError(
                .failure, "\(path) exists already",
                hint: "nothing is ever written over: name another file or move that one away")
        }
    }
}
