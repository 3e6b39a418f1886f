import Logging

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Hard links: SQLite derives the name of a WAL or journal from the name under which its file was
/// opened, so each name of a file has its own. Changes written under one name are lost or undone
/// under another.
extension FileLocation {
    /// The number of names (hard links) that the file has; 1 if there is no file.
    ///
    /// `adopt` may give a new file a second name for a moment; that name is not counted. A killed
    /// process may have left it behind.
    ///
    /// - Parameter removesLeft: Whether to remove a name that was left behind, which only a writer
    ///   does. If `false`, such a name is kept and not counted either.
    /// - Throws: `.io` if the system does not answer.
    func nameCount(removesLeft: Bool = false) throws(StoreError) -> Int {
        let count = try countNames(removesLeft: removesLeft)
        // The maker may have taken its name back after the number was read. It has no other.
        return count > 1 ? try countNames(removesLeft: removesLeft) : count
    }

    private func countNames(removesLeft: Bool) throws(StoreError) -> Int {
        guard let found = try Self.information(path), found.st_nlink > 1 else { return 1 }
        let twins = UnfinishedFile.all(of: self).filter { twin in
            var other = stat()
            return lstat(twin.path, &other) == 0
                && (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)
        }
        let ours = twins.count {
            removesLeft ? $0.removeIfLeft() || $0.state == .held : $0.state != .unknown
        }
        return Int(found.st_nlink) - ours
    }

    /// Refuses an operation, such as a change of the key, that must not be done to a file with
    /// several names.
    ///
    /// - Throws: `.readOnly` if the file has several names; `.io` if the system does not answer.
    func requireOneName() throws(StoreError) {
        let count = try nameCount(removesLeft: true)
        guard count == 1 else { throw severalNames(count) }
    }

    /// Logs a warning if the file has several names, or refuses the file if it is opened for
    /// writing and the configuration's `hardLinks` is `.refused`.
    ///
    /// - Throws: `.readOnly` for a refused file; `.io` if the system does not answer.
    func judgeNames(_ configuration: Configuration, isWriter: Bool) throws(StoreError) {
        let count = try nameCount(removesLeft: isWriter)
        guard count > 1 else { return }
        if isWriter, configuration.hardLinks == .refused { throw severalNames(count) }
        configuration.logger?.warning(
            "the file has several names", metadata: ["path": "\(path)", "count": "\(count)"])
    }

    private func severalNames(_ count: Int) -> StoreError {
        StoreError(
            .readOnly,
            "\(path) has \(count) names (hard links), each with a WAL of its own, and is not "
                + "written",
            hint: "Remove the other names (find DIR -samefile \(path) lists them), or go on with "
                + "a copy that backup makes.")
    }
}
