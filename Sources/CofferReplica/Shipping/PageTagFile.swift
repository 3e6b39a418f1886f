import Coffer

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The tags of the pages that a remote has, next to the store: after a crash only the pages that
/// differ are sent.
///
/// The file is believed only if its tags have the digest that the last record of the remote has. So
/// it may be old, torn or missing, and it is never synced. It has nothing that the store's own file
/// does not show.
///
/// | Offset | Bytes | |
/// |--:|--:|---|
/// | 0 | 8 | `CofferTg` |
/// | 8 | 16 | the replica's random number |
/// | 24 | 4 | pages |
/// | 28 | | a tag of 16 bytes for each page |
struct PageTagFile {
    private let path: String
    private let replica: [UInt8]

    private static let magic = Array("CofferTg".utf8)
    private static let headerByteCount = 28

    /// - Parameter store: The path of the store.
    init(beside store: String, of keys: ReplicaKeys) {
        // A store may have several replicas.
        path = store + "-tags-" + keys.replica.prefix(4).hexDigits
        replica = keys.replica
    }

    // MARK: The lock

    /// A lock on the file, for as long as the value lives. The system ends that of a process which
    /// is killed.
    final class Lock: Sendable {
        let descriptor: Int32

        fileprivate init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        deinit {
            // A child process that is being started has the descriptor until it runs its program,
            // and would keep the lock so long. This ends the lock for both.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }

    /// The result of `lock()`.
    enum Locking {
        case taken(Lock)
        /// Another process has it, or another replica of this one.
        case held
        /// The file cannot be made, or the file system has no locks.
        case impossible
    }

    /// Locks the file, which is made if need be.
    func lock() -> Locking {
        guard let descriptor = openOwn(O_RDWR | O_CREAT) else { return .impossible }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return .taken(Lock(descriptor)) }
        let isHeld = errno == EWOULDBLOCK
        close(descriptor)
        return isHeld ? .held : .impossible
    }

    // MARK: Tags

    /// The tags; `nil` if there are none of this replica, or more than a file has pages.
    func tags(countMax: Int, _ keys: ReplicaKeys) -> PageTags? {
        guard let bytes = bytes(countMax: countMax) else { return nil }
        let count = Int(UInt32(bigEndianAt: 24, of: bytes))
        guard bytes.starts(with: Self.magic + replica),
            bytes.count == Self.headerByteCount + count * PageSnapshot.tagByteCount
        else { return nil }
        var tags = PageTags()
        for start in stride(
            from: Self.headerByteCount, to: bytes.count, by: PageSnapshot.tagByteCount)
        {
            tags.append(bytes[start..<start + PageSnapshot.tagByteCount], keys)
        }
        return tags
    }

    /// Writes the tags that have changed.
    ///
    /// - Parameter old: What the last call has written; empty after one that failed.
    /// - Returns: Whether everything was written. Otherwise the file does not fit the remote.
    func write(_ tags: PageTags, since old: PageTags) -> Bool {
        guard let descriptor = openOwn(O_RDWR | O_CREAT) else { return false }
        defer { close(descriptor) }
        return begin(tags.count, descriptor)
            && write(
                tags, of: (1..<tags.count + 1).lazy.filter { old[$0] != tags[$0] }, to: descriptor)
    }

    /// Writes the tags of the pages of one record, in a transfer that has not ended.
    ///
    /// If it fails, the file does not fit the remote.
    func write(_ tags: PageTags, of numbers: ArraySlice<UInt32>) {
        guard let descriptor = openOwn(O_RDWR | O_CREAT) else { return }
        defer { close(descriptor) }
        guard begin(tags.count, descriptor) else { return }
        _ = write(tags, of: numbers.lazy.map(Int.init), to: descriptor)
    }

    /// Writes the header, and gives the file its size.
    private func begin(_ count: Int, _ descriptor: Int32) -> Bool {
        let byteCount = off_t(Self.headerByteCount + count * PageSnapshot.tagByteCount)
        let header = Self.magic + replica + UInt32(count).bigEndianBytes
        return ftruncate(descriptor, byteCount) == 0 && write(header, at: 0, to: descriptor)
    }

    /// Writes the tags of some pages, which ascend: those of neighbours in one call.
    private func write(
        _ tags: PageTags, of numbers: some Sequence<Int>, to descriptor: Int32
    ) -> Bool {
        var (run, first) = ([UInt8](), 1)
        func writeRun() -> Bool {
            let offset = Self.headerByteCount + (first - 1) * PageSnapshot.tagByteCount
            return run.isEmpty || write(run, at: offset, to: descriptor)
        }
        for number in numbers {
            guard let tag = tags[number] else { return false }
            if number != first + run.count / PageSnapshot.tagByteCount {
                guard writeRun() else { return false }
                (run, first) = ([], number)
            }
            run += tag
        }
        return writeRun()
    }

    private func write(_ bytes: [UInt8], at offset: Int, to descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { PositionedIO.write($0, to: descriptor, at: off_t(offset)) }
    }

    private func bytes(countMax: Int) -> [UInt8]? {
        guard let descriptor = openOwn(O_RDONLY) else { return nil }
        defer { close(descriptor) }
        var status = stat()
        let byteCountMax = Self.headerByteCount + countMax * PageSnapshot.tagByteCount
        guard fstat(descriptor, &status) == 0, status.st_size >= Self.headerByteCount,
            status.st_size <= byteCountMax
        else { return nil }
        let byteCount = Int(status.st_size)
        let bytes = PositionedIO.bytes(count: byteCount, from: descriptor, at: 0)
        return bytes?.count == byteCount ? bytes : nil
    }

    /// Opens the file if it is this user's own, and has no other name: in a folder that others may
    /// write, it could lead to any file of this user.
    private func openOwn(_ flags: Int32) -> Int32? {
        let descriptor = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_nlink == 1, status.st_uid == geteuid()
        else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
