import Logging
import Synchronization

/// Logs once per process what its operator should know: the engine is old, keys may be swapped.
enum EngineNotice {
    private static let isAgeLogged = Atomic(false)
    private static let isRefusalLogged = Atomic(false)

    static func log(to logger: Logger?) throws(StoreError) {
        guard let logger else { return }
        if let notice = try Engine.capabilities.ageNotice,
            !isAgeLogged.exchange(true, ordering: .relaxed)
        {
            logger.notice("\(notice)")
        }
        if LockedMemory.wasRefused, !isRefusalLogged.exchange(true, ordering: .relaxed) {
            logger.warning("the memory of keys is not locked: raise the limit (ulimit -l)")
        }
    }
}
