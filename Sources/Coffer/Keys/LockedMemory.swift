import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Whole pages of memory that are kept out of swap and core dumps, as far as the system allows.
///
/// Each secret has its own pages, because a shared page would be unlocked with its first owner:
///
/// > "Memory locks do not stack"
/// > <https://man7.org/linux/man-pages/man2/mlock.2.html>
enum LockedMemory {
    private static let refused = Atomic(false)

    /// Whether the system has refused to lock pages since the process began.
    static var wasRefused: Bool { refused.load(ordering: .relaxed) }

    /// Allocates pages that hold at least `byteCount` bytes, locks them, and zeroes those bytes.
    ///
    /// If the system refuses to lock the pages, `wasRefused` becomes true and nothing else happens:
    /// `RLIMIT_MEMLOCK` may be 0 bytes, and a store that does not open protects nobody.
    ///
    /// - Parameter byteCount: May be 0; the result has at least one page.
    /// - Returns: Pages for `free(_:)`. They do not hold a secret yet.
    /// - Note: C: `mlock`; on Linux also `madvise` with `MADV_DONTDUMP`.
    static func allocate(byteCount: Int) -> UnsafeMutableRawBufferPointer {
        let pageByteCount = Int(getpagesize())
        let pageCount = max(1, (byteCount + pageByteCount - 1) / pageByteCount)
        let pages = UnsafeMutableRawBufferPointer.allocate(
            byteCount: pageCount * pageByteCount, alignment: pageByteCount)
        if mlock(pages.baseAddress, pages.count) != 0 { refused.store(true, ordering: .relaxed) }
        #if os(Linux)
        _ = madvise(pages.baseAddress, pages.count, MADV_DONTDUMP)
        #endif
        UnsafeMutableRawBufferPointer(rebasing: pages[..<byteCount])
            .initializeMemory(as: UInt8.self, repeating: 0)
        return pages
    }

    /// Wipes a secret, then unlocks and frees its pages.
    ///
    /// - Parameters:
    ///   - pages: The pages that `allocate(byteCount:)` returned.
    ///   - byteCount: How many bytes at their start hold the secret.
    /// - Note: C: `munlock`; on Linux also `madvise` with `MADV_DODUMP`.
    static func free(_ pages: UnsafeMutableRawBufferPointer, wiping byteCount: Int) {
        UnsafeMutableRawBufferPointer(rebasing: pages[..<byteCount]).wipe()
        #if os(Linux)
        _ = madvise(pages.baseAddress, pages.count, MADV_DODUMP)
        #endif
        _ = munlock(pages.baseAddress, pages.count)
        pages.deallocate()
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Overwrites the bytes with zeros, in a way that the optimiser cannot remove.
    ///
    /// - Note: C: `memset_s` on Apple's systems, `explicit_bzero` elsewhere.
    package func wipe() {
        guard let baseAddress else { return }
        #if canImport(Darwin)
        memset_s(baseAddress, count, 0, count)
        #else
        explicit_bzero(baseAddress, count)
        #endif
    }
}
