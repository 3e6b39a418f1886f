#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Reads a WAL or a journal. Closing it is harmless, because SQLite holds no locks on it.
struct FileReader: ~Copyable {
    private let descriptor: Int32

    /// Opens the file; `nil` if it does not exist or this user may not read it.
    init?(_ path: String) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// Bytes at an offset; `nil` if the file ends before them or cannot be read.
    borrowing func bytes(at offset: Int, _ count: Int) -> [UInt8]? {
        let bytes = PositionedIO.bytes(count: count, from: descriptor, at: off_t(offset))
        return bytes?.count == count ? bytes : nil
    }
}
