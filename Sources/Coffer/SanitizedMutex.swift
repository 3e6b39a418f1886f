#if COFFER_TSAN
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Replaces and shadows `Synchronization.Mutex` in a build for the thread sanitizer.
///
/// On Linux the library's mutex is a futex in the standard library, which is not instrumented. The
/// sanitizer does not see that it orders anything, and reports all accesses that it guards as
/// races. It does know the system's mutex. `make tsan` sets the condition.
final class Mutex<Value>: @unchecked Sendable {
    // @unchecked: the value is accessed only while the lock is held.

    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    /// Memory of its own: a property without a size has the address of the object, which every
    /// call reads without the lock.
    private let value: UnsafeMutablePointer<Value>

    init(_ value: Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
#endif
