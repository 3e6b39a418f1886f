import Logging
import Synchronization

/// Tells once per process that the engine is old.
enum EngineNotice {
    private static let isLogged = Atomic(false)

    static func log(_ notice: String, to logger: Logger?) {
        guard let logger, !isLogged.exchange(true, ordering: .relaxed) else { return }
        logger.notice("\(notice)")
    }
}
