import Coffer

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Encrypted pages that wait: in memory, and beyond 16 MiB in a file without a name.
final class PageSpool {
    private static let maximumByteCount = 16 << 20

    let pageByteCount: Int
    private(set) var numbers: [UInt32] = []
    private var memory: [UInt8] = []
    /// Of the file; -1 while everything is in memory.
    private var descriptor: Int32 = -1
    private let path: String

    /// - Parameter path: The file is made next to this one, and has its name for a moment.
    init(pageByteCount: Int, beside path: String) {
        self.pageByteCount = pageByteCount
        let suffix = String(UInt64.random(in: 0 ... .max), radix: 36)
        self.path = "\(path).spool-\(suffix)"
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    var count: Int { numbers.count }

    /// - Throws: `.full`, `.io` if the file cannot be made or written.
    func append(_ page: some Collection<UInt8>, _ number: Int) throws(StoreError) {
        if memory.count + page.count > Self.maximumByteCount { try flush() }
        memory += page
        numbers.append(UInt32(number))
    }

    /// Some pages, in the order in which they were added.
    func pages(_ range: Range<Int>) throws(StoreError) -> [ReplicaRecord.Page] {
        if descriptor >= 0 { try flush() }
        let bytes: [UInt8]
        let start = range.lowerBound * pageByteCount
        if descriptor < 0 {
            bytes = Array(memory[start..<start + range.count * pageByteCount])
        } else {
            let read = PositionedIO.bytes(
                count: range.count * pageByteCount, from: descriptor, at: off_t(start))
            guard let read, read.count == range.count * pageByteCount else {
                throw StoreError.system(read == nil ? errno : EIO, "cannot read the spooled pages")
            }
            bytes = read
        }
        return ReplicaRecord.Page.list(numbers[range], bytes[...], pageByteCount)
    }

    /// Calls `body` for each page, in the order in which they were added.
    func readAll(_ body: (ReplicaRecord.Page) throws -> Void) throws {
        for start in stride(from: 0, to: count, by: 256) {
            for page in try pages(start..<min(start + 256, count)) { try body(page) }
        }
    }

    private func flush() throws(StoreError) {
        if descriptor < 0 {
            descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else {
                throw StoreError.system(errno, "cannot make a file for pages next to the store")
            }
            unlink(path)
        }
        let offset = numbers.count * pageByteCount - memory.count
        let isWritten = memory.withUnsafeBytes {
            PositionedIO.write($0, to: descriptor, at: off_t(offset))
        }
        guard isWritten else {
            throw StoreError.system(errno, "cannot write pages to a file next to the store")
        }
        memory.removeAll(keepingCapacity: true)
    }
}
