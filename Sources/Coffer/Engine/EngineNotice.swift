import Logging
import Synchronization

/// Tells once per process that the engine is old.
enum EngineNotice {
    private static let isLogged = Atomic(false)

    static func log(to logger: Logger?) throws(StoreError) {
        guard let logger, let notice = try Engine.capabilities.ageNotice,
            !isLogged.exchange(true, ordering: .relaxed)
        else { return }
        logger.notice("\(notice)")
    }
}
