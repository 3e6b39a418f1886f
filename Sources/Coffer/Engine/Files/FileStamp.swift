#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The identity, the size and the times of a file: each write to the file changes one of them.
///
/// Two equal strict stamps mean that nothing was written in between, if the first one was old, and
/// if no clock was set back. A program that sets times can mislead one that is not strict.
struct FileStamp: Equatable, Sendable {
    private let identity: FileLocation.Identity
    private let byteCount: Int
    /// Of the last write. A program may set it.
    private let written: Time
    /// Of the last change, also of the name or of the other time; only of a strict stamp. On a
    /// local file system of Unix no program can set it.
    private let changed: Time?

    struct Time: Equatable, Sendable {
        let seconds: Int
        let nanoseconds: Int

        init(_ time: timespec) {
            (seconds, nanoseconds) = (Int(time.tv_sec), Int(time.tv_nsec))
        }
    }

    /// - Parameter isStrict: Whether a change of the name or of the times counts too.
    init(_ found: stat, isStrict: Bool = false) {
        identity = FileLocation.Identity(
            device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
        byteCount = Int(found.st_size)
        #if canImport(Darwin)
        written = Time(found.st_mtimespec)
        changed = isStrict ? Time(found.st_ctimespec) : nil
        #else
        written = Time(found.st_mtim)
        changed = isStrict ? Time(found.st_ctim) : nil
        #endif
    }

    /// Whether the next write is sure to get another time: some file systems count in steps of two
    /// seconds. That is also so for a time in the future.
    var isOld: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return [written, changed].compactMap(\.self).allSatisfy {
            abs(Int(now.tv_sec) - $0.seconds) > 2
        }
    }

    /// The strict stamp of a file, if it is old.
    static func ofOldFile(at location: FileLocation) -> FileStamp? {
        guard let found = try? FileLocation.information(location.path) else { return nil }
        let stamp = FileStamp(found, isStrict: true)
        return stamp.isOld ? stamp : nil
    }
}
