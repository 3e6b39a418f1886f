import Synchronization

/// Orders work before a mark on one thread before the work after a mark on another.
///
/// A continuation sees to that, but the runtime does not tell the thread sanitizer of one that is
/// resumed before its task waits.
struct ResumptionOrder: Sendable {
    #if COFFER_TSAN
    private let count = Mutex(0)
    #endif

    func mark() {
        #if COFFER_TSAN
        count.withLock { $0 &+= 1 }
        #endif
    }
}
