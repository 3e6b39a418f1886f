import Synchronization

/// Orders work before a mark on one thread before the work after a mark on another.
///
/// A continuation guarantees that order. But when it is resumed before its task waits, the runtime
/// does not report the order to the thread sanitizer.
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
