#if COFFER_TSAN
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Stands for `Synchronization.Mutex`, whose name it hides, in a build for the thread sanitizer.
///
/// On Linux the library's mutex is a futex in the standard library, which is not instrumented: the
/// sanitizer does not see that it orders anything, and reports all that it guards as races. A mutex
/// of the system's it knows. `make tsan` sets the condition.
final class Mutex<Value>: @unchecked Sendable {
    // @unchecked: the value is reached with the lock held only.

    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    init(_ value: Value) {
        self.value = value
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value)
    }
}
#endif
