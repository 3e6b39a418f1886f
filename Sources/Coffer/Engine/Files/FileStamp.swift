#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the system says of a file that changes with each write.
///
/// Two equal stamps mean that nothing was written in between, if the first one was old.
struct FileStamp: Equatable, Sendable {
    let identity: FileLocation.Identity
    let byteCount: Int
    let seconds: Int
    let nanoseconds: Int

    init(_ found: stat) {
        identity = FileLocation.Identity(
            device: UInt64(found.st_dev), inode: UInt64(found.st_ino))
        byteCount = Int(found.st_size)
        #if canImport(Darwin)
        let time = found.st_mtimespec
        #else
        let time = found.st_mtim
        #endif
        seconds = Int(time.tv_sec)
        nanoseconds = Int(time.tv_nsec)
    }

    /// Whether the next change is sure to get another time: some file systems count in steps of two
    /// seconds.
    var isOld: Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return abs(Int(now.tv_sec) - seconds) > 2
    }
}
