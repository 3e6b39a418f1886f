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
}
