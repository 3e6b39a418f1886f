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
    /// The pages of the whole file, and how they are encrypted; `nil` while it is written.
    private var whole: (pageCount: Int, cipher: FileCipher)?

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
    package func write(_ page: ArraySlice<UInt8>, at number: Int) throws(StoreError) {
        let offset = off_t(number - 1) * off_t(source.cipher.profile.pageByteCount)
        guard page.withUnsafeBytes({ PositionedIO.write($0, to: descriptor, at: offset) }) else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
    }

    /// Cuts the file to so many pages.
    package func cut(to pageCount: Int) throws(StoreError) {
        let byteCount = off_t(pageCount) * off_t(source.cipher.profile.pageByteCount)
        guard ftruncate(descriptor, byteCount) == 0 else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
    }

    // MARK: Proof

    /// Gives the file its size, and the key of its pages. Nothing is written afterwards.
    ///
    /// - Parameter epochs: The numbers of the keys.
    /// - Throws: `.damaged` for an epoch that does not fit the file.
    package func end(pageCount: Int, _ epochs: ReplicaEpochs) throws(StoreError) {
        let key = try source.copyKey(epochs)
        target.target.use(key)
        whole = (pageCount, key.cipher)
        try cut(to: pageCount)
    }

    /// Reads every page back and authenticates it, and syncs the file.
    ///
    /// `check(_:)` may run at the same time.
    ///
    /// - Parameter note: Gets the number and the tag of each page. A page that was never written
    ///   has zeros.
    /// - Returns: The error of the first page that fails authentication; `nil` if none does. A page
    ///   of zeros is one that SQLite has left, if the caller finds all tags to be right.
    /// - Throws: `.cancelled`, `.io`.
    package func readBack(
        _ progress: ((CopyProgress) -> Void)?, _ cancellation: Cancellation?,
        _ note: (Int, ArraySlice<UInt8>) -> Void
    ) throws(StoreError) -> StoreError? {
        let (pageCount, cipher) = try requireWhole()
        let monitor = CopyMonitor(progress: progress, cancellation: cancellation)
        let authenticator = PageAuthenticator(key: cipher.key, profile: cipher.profile)
        let (byteCount, macOffset) = (cipher.profile.pageByteCount, cipher.profile.macOffset)
        var failure: StoreError?
        for first in stride(from: 1, through: pageCount, by: CopyMonitor.interval) {
            let count = min(CopyMonitor.interval, pageCount - first + 1)
            let pages = try bytes(ofPages: first..<first + count, byteCount)
            for number in first..<first + count {
                let start = (number - first) * byteCount
                let page = pages[start..<start + byteCount]
                note(number, page.dropFirst(macOffset).prefix(PageSnapshot.tagByteCount))
                let isAuthentic = page.withUnsafeBytes {
                    authenticator.authenticates($0, number: number)
                }
                if failure == nil, !isAuthentic, !page.allSatisfy({ $0 == 0 }) {
                    failure = StoreError(
                        .damaged, "page \(number) of the replica failed authentication",
                        pages: [number])
                }
            }
            try monitor.report(.verifyingPages, first + count - 1, of: pageCount)
        }
        guard fsync(descriptor) == 0 else {
            throw StoreError.system(errno, "cannot write \(path)")
        }
        return failure
    }

    private func bytes(
        ofPages numbers: Range<Int>, _ pageByteCount: Int
    ) throws(StoreError) -> [UInt8] {
        let byteCount = numbers.count * pageByteCount
        let bytes = PositionedIO.bytes(
            count: byteCount, from: descriptor,
            at: off_t(numbers.lowerBound - 1) * off_t(pageByteCount))
        guard let bytes, bytes.count == byteCount else {
            throw StoreError.system(bytes == nil ? errno : EIO, "cannot read \(path)")
        }
        return bytes
    }

    /// Checks the structure, and counts the rows. A check that cannot run, without a collation of
    /// the program that made the store, passes: `readBack` authenticates every page.
    ///
    /// - Throws: `.damaged`; `.cancelled`, with SQLCipher 3 only after the check of the structure.
    package func check(_ cancellation: Cancellation?) throws(StoreError) -> CopyReport {
        let cipher = try requireWhole().cipher
        let monitor = CopyMonitor(progress: nil, cancellation: cancellation)
        do throws(StoreError) {
            let result = try target.target.check(
                against: nil, monitor, authenticatesAllPages: false, stopsAtOnce: true)
            return CopyReport(result, profile: cipher.profile)
        } catch {
            // A check that was interrupted may report a sound file as damaged.
            try monitor.requireNotCancelled()
            throw error
        }
    }

    /// Empties a file that is not to be used, so that `check(_:)` ends soon.
    package func abandon() { _ = ftruncate(descriptor, 0) }

    /// Gives the file its name.
    ///
    /// - Throws: `.alreadyExists`. After an error no file has the name.
    package func adopt() throws(StoreError) { try target.target.adopt() }

    private func requireWhole() throws(StoreError) -> (pageCount: Int, cipher: FileCipher) {
        guard let whole else { throw StoreError(.engine, "\(path) is checked before its end") }
        return whole
    }
}
