import Dispatch
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A thread of `WorkThreads`. It has work, or was taken for work, or is idle.
final class WorkThread: @unchecked Sendable {
    // @unchecked: only the thread itself uses the two flags. The rest is constant or guarded by a
    // mutex.

    let threads: WorkThreads
    private let hasWork = DispatchSemaphore(value: 0)
    private let work = Mutex<(@Sendable () -> Void)?>(nil)
    /// Whether its work has done everything that others may wait for.
    private var isEnding = false
    /// Whether it was taken for work that follows its current work.
    private var isTakenForNext = false

    init(of threads: WorkThreads) {
        self.threads = threads
    }

    /// Runs `work` once on the thread, which was taken for it; after the current work, if that has
    /// not ended.
    func start(_ work: @escaping @Sendable () -> Void) {
        self.work.withLock { $0 = work }
        hasWork.signal()
    }

    /// Returns the thread to its `WorkThreads`, because it was taken and gets no work.
    func giveBack() {
        if Self.current === self, isTakenForNext {
            isTakenForNext = false
        } else {
            threads.didEnd(self)
        }
    }

    /// Declares that the current thread's work does nothing more that others may wait for. A ticket
    /// admitted from now on may run after it on the same thread, so that no other thread has to
    /// wake. Does nothing on a thread that belongs to no `WorkThreads`.
    static func willEnd() {
        current?.isEnding = true
    }

    /// Takes the current thread for work that follows its current work.
    ///
    /// - Returns: `nil` if the current thread does not belong to `threads`, has not called
    ///   `willEnd()`, or was taken already.
    static func takeForNext(of threads: WorkThreads) -> WorkThread? {
        guard let current, current.isEnding, !current.isTakenForNext, threads === current.threads
        else { return nil }
        current.isTakenForNext = true
        return current
    }

    // MARK: The thread itself

    /// Minimum stack size in bytes, for the user's bodies. The system's default may be smaller: 512
    /// KiB on Darwin, 128 KiB with musl.
    private static let stackByteCountMin = 2 << 20

    /// Starts the system's thread, which then waits for work.
    ///
    /// - Returns: `false` if the system refuses a thread.
    func begin() -> Bool {
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        var stackByteCount = 0
        pthread_attr_getstacksize(&attributes, &stackByteCount)
        if stackByteCount < Self.stackByteCountMin {
            pthread_attr_setstacksize(&attributes, Self.stackByteCountMin)
        }
        let own = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread, &attributes,
            { own in
                let own: UnsafeMutableRawPointer? = own
                guard let own else { return nil }
                Unmanaged<WorkThread>.fromOpaque(own).takeRetainedValue().run()
                return nil
            }, own.toOpaque())
        guard code == 0 else {
            own.release()
            return false
        }
        #if canImport(Darwin)
        if let thread { pthread_detach(thread) }
        #else
        pthread_detach(thread)
        #endif
        return true
    }

    private func run() {
        Self.blockSignals()
        pthread_setspecific(Self.threadKey, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.threadKey, nil) }
        while waitForWork() {
            let work = work.withLock { work in
                defer { work = nil }
                return work
            }
            #if canImport(ObjectiveC)
            autoreleasepool { work?() }
            #else
            work?()
            #endif
            isEnding = false
            if isTakenForNext { isTakenForNext = false } else { threads.didEnd(self) }
        }
    }

    /// Blocks until the thread has work.
    ///
    /// - Returns: `false` if no work came within `idleDuration` and none can come later, because
    ///   the thread was removed from its `WorkThreads`.
    private func waitForWork() -> Bool {
        let deadline = DispatchTime.now() + .milliseconds(threads.idleDuration.milliseconds)
        if hasWork.wait(timeout: deadline) == .success { return true }
        if threads.remove(self) { return false }
        hasWork.wait()
        return true
    }

    /// Leaves signals to the program's threads, apart from those that a thread causes itself.
    private static func blockSignals() {
        var signals = sigset_t()
        sigfillset(&signals)
        let own = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP]
        for signal in own + [SIGXFSZ] { sigdelset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    // MARK: One value for each thread

    /// The calling thread, if it belongs to a `WorkThreads`.
    static var current: WorkThread? {
        guard let pointer = pthread_getspecific(threadKey) else { return nil }
        return Unmanaged<WorkThread>.fromOpaque(pointer).takeUnretainedValue()
    }

    private static let threadKey: pthread_key_t = {
        var key = pthread_key_t()
        // As in `HeldStore`.
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "no thread-specific key is left in this process")
        return key
    }()
}
