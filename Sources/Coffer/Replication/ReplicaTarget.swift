#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that is put together from the pages of a replica, and gets its name when it is proven.
package final class ReplicaTarget {
    private let target: CopyTargetBox
    private let source: ReplicaSource
    private let path: String
    private let descriptor: Int32

    /// - Parameter source: Has the path of the new file.
    /// - Throws: `.alreadyExists` if something is at the path.
    package init(_ source: ReplicaSource, _ configuration: Configuration) throws(StoreError) {
        let file = try CopyTarget.location(source.path)
        self.source = source
        // A change of the mode would change the first page, which is as the digest says.
        var configuration = configuration
        configuration.journalMode = .existing
        target = CopyTargetBox(
            try CopyTarget(
                at: file, of: nil, key: CopyKey(source.cipher, nil),
                configuration: configuration))
        let temporary = target.target.temporary
        try temporary.createPrivate()
        self.path = temporary.path
        descriptor = open(temporary.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            throw StoreError.system(errno, "cannot write \(temporary.path)")
        }
    }

    deinit { close(descriptor) }

    /// Writes a page, counted from 1.
    package func write(_ page: [UInt8], at number: Int) throws(StoreError) {
        let offset = off_t(number - 1) * off_t(source.cipher.profile.pageByteCount)
        guard page.withUnsafeBytes({ PositionedIO.write($0, to: descriptor, at: offset) }) else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
    }

    /// The tag of a page that was written.
    package func tag(ofPage number: Int) throws(StoreError) -> [UInt8] {
        let start =
            (number - 1) * source.cipher.profile.pageByteCount + source.cipher.profile.macOffset
        var count: Int?
        let tag = [UInt8](unsafeUninitializedCapacity: PageSnapshot.tagByteCount) {
            buffer, filled in
            count = PositionedIO.read(
                into: UnsafeMutableRawBufferPointer(buffer), from: descriptor, at: off_t(start))
            filled = count ?? 0
        }
        guard let count else { throw StoreError.system(errno, "cannot read \(path)") }
        // A page that was never written reads as zeros.
        return tag + [UInt8](repeating: 0, count: PageSnapshot.tagByteCount - count)
    }

    /// Cuts the file to so many pages.
    package func cut(to pageCount: Int) throws(StoreError) {
        let byteCount = off_t(pageCount) * off_t(source.cipher.profile.pageByteCount)
        guard ftruncate(descriptor, byteCount) == 0 else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
    }

    /// Authenticates each page, checks the structure, and gives the file its name.
    ///
    /// The caller has compared the tags of all pages with what the owner of the replica says. So a
    /// page of zeros is one that SQLite has left.
    ///
    /// - Parameter epochs: The numbers of the keys.
    /// - Throws: `.damaged` for a page or a structure that is not sound, and for an epoch that does
    ///   not fit the file; `.alreadyExists`; `.cancelled`. After an error no file has the name.
    package func adopt(
        pageCount: Int, _ epochs: ReplicaEpochs, _ progress: ((CopyProgress) -> Void)?,
        _ cancellation: Cancellation?
    ) throws -> CopyReport {
        let monitor = CopyMonitor(progress: progress, cancellation: cancellation)
        let key = try source.copyKey(epochs)
        target.target.use(key)
        try cut(to: pageCount)
        guard fsync(descriptor) == 0 else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
        try requireAuthentic(pageCount, key.cipher, monitor)
        let result = try target.target.check(against: nil, monitor, authenticatesAllPages: false)
        try target.target.adopt()
        return CopyReport(result, profile: key.cipher.profile)
    }

    private func requireAuthentic(
        _ pageCount: Int, _ cipher: FileCipher, _ monitor: CopyMonitor
    ) throws(StoreError) {
        let authenticator = PageAuthenticator(key: cipher.key, profile: cipher.profile)
        let byteCount = cipher.profile.pageByteCount
        var page = [UInt8](repeating: 0, count: byteCount)
        for number in stride(from: 1, through: pageCount, by: 1) {
            if number % CopyMonitor.interval == 0 {
                try monitor.report(.verifyingPages, number, of: pageCount)
            }
            let count = page.withUnsafeMutableBytes {
                PositionedIO.read(
                    into: $0, from: descriptor, at: off_t(number - 1) * off_t(byteCount))
            }
            guard count == byteCount else { throw StoreError.system(errno, "cannot read \(path)") }
            let isAuthentic = page.withUnsafeBytes {
                authenticator.authenticates($0, number: number)
            }
            guard isAuthentic || page.allSatisfy({ $0 == 0 }) else {
                throw StoreError(
                    .damaged, "page \(number) of the replica failed authentication",
                    pages: [number])
            }
        }
    }
}
