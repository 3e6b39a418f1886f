import Logging

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Hard links: a log or journal is found by the name that its file was opened under, so each name
/// of a file has its own. What was written under one name is lost or undone under another.
extension FileLocation {
    /// How many names the file has.
    ///
    /// The other name that a maker had it under is not counted, see `adopt`: one that a killed
    /// process has left there is removed.
    ///
    /// - Parameter removesLeft: Whether that one goes, which only a writer does. Otherwise it is
    ///   not counted either.
    func nameCount(removesLeft: Bool = false) throws(StoreError) -> Int {
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

    /// Refuses what would tear a file with several names apart, such as a change of its key.
    ///
    /// - Throws: `.readOnly`.
    func requireOneName() throws(StoreError) {
        let count = try nameCount(removesLeft: true)
        guard count == 1 else { throw severalNames(count) }
    }

    /// Tells that the file has several names, and refuses it where the configuration says so.
    ///
    /// - Throws: `.readOnly`.
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
            "\(path) has \(count) names (hard links), each with a log of its own, and is not "
                + "written",
            hint: "Remove the other names (find DIR -samefile \(path) lists them), or go on with "
                + "a copy that backup makes.")
    }
}
