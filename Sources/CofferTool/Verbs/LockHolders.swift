#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The ids of other processes that hold SQLite's locks on a store. Looking takes no lock.
///
/// Must not be used for a file that this process has open: closing a descriptor drops the process's
/// own locks.
struct LockHolders {
    /// The writer in WAL mode.
    let writer: Int32?
    /// A reader in WAL mode.
    let reader: Int32?
    /// In WAL mode a process that has the store open; without WAL a process that reads or writes
    /// it.
    let user: Int32?

    init(of path: String) {
        // "#define PENDING_BYTE 0x40000000 … RESERVED_BYTE (PENDING_BYTE+1) … SHARED_SIZE 510":
        // https://www.sqlite.org/src/file?name=src/os.h
        user = Self.holder(path, from: 0x4000_0000, count: 512)
        // "WAL_WRITE_LOCK 120 … WAL_READ_LOCK 123-127":
        // https://www.sqlite.org/walformat.html#wal_locks
        writer = Self.holder(path + "-shm", from: 120, count: 1)
        reader = Self.holder(path + "-shm", from: 123, count: 5)
    }

    private static func holder(_ path: String, from start: Int, count: Int) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(start)
        lock.l_len = off_t(count)
        guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else {
            return nil
        }
        return lock.l_pid
    }
}
