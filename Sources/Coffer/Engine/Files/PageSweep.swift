import Dispatch
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Authenticates many pages of a main file, on several threads.
///
/// The caller's thread reads the pages, because only one may use the engine's file at a time. It
/// leaves them to helpers in chunks, and authenticates a chunk itself while enough are waiting. If
/// the process has no thread for a helper, the caller does its work.
///
/// Pages that do not follow each other, as those of a sample, are authenticated by the caller.
struct PageSweep: ~Copyable {
    private let pages: RawPages
    private let chunks: Chunks
    /// The threads that authenticate, with the caller's.
    private let threadCount: Int
    private let pagesPerChunk: Int
    /// Runs a helper on another thread.
    private let run: (@escaping @Sendable () -> Void) -> Void

    /// The most threads: one reads for all of them.
    private static let threadCountMax = 8
    /// The most that the engine reads at once: a page of the largest size.
    private static let bytesPerChunk = 64 << 10
    private static let pagesPerReport = 256

    /// - Parameters:
    ///   - threadCountMax: The most threads that authenticate; `nil` for one for each core.
    ///   - run: For tests: runs a helper on another thread.
    init(
        _ handle: Handle, key: borrowing RawKey, profile: CipherProfile,
        threadCountMax: Int? = nil,
        run: @escaping (@escaping @Sendable () -> Void) -> Void = { WorkThreads.run($0) }
    ) {
        pages = RawPages(handle, key: key, profile: profile)
        chunks = Chunks(
            PageAuthenticator(key: key, profile: profile), salt: key.salt,
            pageByteCount: pages.byteCount)
        pagesPerChunk = max(1, Self.bytesPerChunk / pages.byteCount)
        let wanted = threadCountMax ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))
        threadCount = min(max(wanted, 1), Self.threadCountMax)
        self.run = run
    }

    /// Authenticates pages of the main file, each as `RawPages.isAuthentic(_:)` does.
    ///
    /// - Parameters:
    ///   - numbers: The pages, counted from 1, in ascending order.
    ///   - told: Called with the number of pages checked so far, after about every 256 pages and
    ///     once more after the last one. If it throws, the sweep stops.
    /// - Returns: The pages that fail, in ascending order.
    /// - Throws: The error of `told`; otherwise as `RawPages.isAuthentic(_:)`.
    /// - Complexity: O(*pages*) time; at most 256 KiB of memory for each thread.
    consuming func failing(
        of numbers: some Sequence<Int>, told: (Int) throws(StoreError) -> Void
    ) throws(StoreError) -> [Int] {
        let chunks = chunks
        defer { chunks.end() }
        var leftCount = 0
        var untoldCount = 0
        var next: [Int] = []
        for number in numbers {
            next.append(number)
            guard next.count == pagesPerChunk else { continue }
            if try take(next) {
                leftCount += 1
                // Not for the first chunk: a small file needs no helper.
                if (2..<threadCount + 1).contains(leftCount) {
                    // A thread that comes after the end must not keep the key.
                    run { [weak chunks] in chunks?.help() }
                }
            }
            untoldCount += next.count
            next.removeAll(keepingCapacity: true)
            if untoldCount >= Self.pagesPerReport {
                untoldCount = 0
                try told(chunks.doneCount)
            }
        }
        _ = try take(next)
        let failing = chunks.finish()
        try told(chunks.doneCount)
        return failing
    }

    /// Reads the pages, and leaves them to the helpers or authenticates them.
    ///
    /// - Returns: Whether a helper could authenticate them.
    private borrowing func take(_ numbers: [Int]) throws(StoreError) -> Bool {
        guard let first = numbers.first, let last = numbers.last else { return false }
        if last - first == numbers.count - 1,
            let bytes = try? pages.bytes(from: first, count: numbers.count)
        {
            chunks.add(Chunks.Chunk(first: first, bytes: bytes), waitingMax: 2 * (threadCount - 1))
            return true
        }
        // Pages apart from each other, beyond the end of the file, or on a bad sector.
        var failing: [Int] = []
        for number in numbers where try !pages.isAuthentic(number) { failing.append(number) }
        chunks.note(numbers.count, failing)
        return false
    }
}

/// Pages that wait to be authenticated, and the findings.
private final class Chunks: Sendable {
    /// Pages that follow each other.
    struct Chunk: Sendable {
        let first: Int
        let bytes: [UInt8]
    }

    private struct State {
        var waiting: [Chunk] = []
        var helperCount = 0
        var isEnded = false
        var doneCount = 0
        var failing: [Int] = []
    }

    private let authenticator: PageAuthenticator
    private let salt: [UInt8]
    private let pageByteCount: Int
    private let state = Mutex(State())
    /// Wakes a helper for each chunk, and each helper at the end.
    private let isWanted = DispatchSemaphore(value: 0)
    /// Counts the helpers that have ended.
    private let hasEnded = DispatchSemaphore(value: 0)

    init(_ authenticator: consuming PageAuthenticator, salt: [UInt8], pageByteCount: Int) {
        self.authenticator = authenticator
        (self.salt, self.pageByteCount) = (salt, pageByteCount)
    }

    /// The number of pages that are done.
    var doneCount: Int { state.withLock { $0.doneCount } }

    /// Leaves a chunk to the helpers. If more than `waitingMax` are waiting, authenticates one of
    /// them.
    func add(_ chunk: Chunk, waitingMax: Int) {
        let own = state.withLock { state in
            state.waiting.append(chunk)
            return state.waiting.count > waitingMax ? state.waiting.popLast() : nil
        }
        if let own { authenticate(own) } else { isWanted.signal() }
    }

    /// Counts pages as done, of which some fail.
    func note(_ count: Int, _ failing: [Int]) {
        state.withLock { state in
            state.doneCount += count
            state.failing += failing
        }
    }

    /// Authenticates chunks until the end of the sweep, on another thread than that of the sweep.
    func help() {
        let isInTime = state.withLock { state in
            if !state.isEnded { state.helperCount += 1 }
            return !state.isEnded
        }
        guard isInTime else { return }
        defer { hasEnded.signal() }
        while true {
            WorkThreads.whileBlocked { isWanted.wait() }
            let (chunk, isEnded) = state.withLock { ($0.waiting.popLast(), $0.isEnded) }
            if let chunk { authenticate(chunk) } else if isEnded { return }
        }
    }

    /// Authenticates the chunks that wait, together with the helpers, and waits for them.
    ///
    /// - Returns: The pages that fail, in ascending order.
    func finish() -> [Int] {
        while let chunk = state.withLock({ $0.waiting.popLast() }) { authenticate(chunk) }
        end()
        return state.withLock { $0.failing.sorted() }
    }

    /// Leaves the chunks that wait, and waits for the helpers.
    func end() {
        let helperCount = state.withLock { state in
            state.isEnded = true
            state.waiting = []
            defer { state.helperCount = 0 }
            return state.helperCount
        }
        for _ in 0..<helperCount { isWanted.signal() }
        for _ in 0..<helperCount { hasEnded.wait() }
    }

    private func authenticate(_ chunk: Chunk) {
        var failing: [Int] = []
        let count = chunk.bytes.count / pageByteCount
        chunk.bytes.withUnsafeBytes { bytes in
            for index in 0..<count {
                let page = UnsafeRawBufferPointer(
                    rebasing: bytes[index * pageByteCount..<(index + 1) * pageByteCount])
                let number = chunk.first + index
                if !authenticator.isSound(page, number: number, salt: salt) {
                    failing.append(number)
                }
            }
        }
        note(count, failing)
    }
}
