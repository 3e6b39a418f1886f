import Coffer
import Synchronization

/// Carries an optional key into the task that consumes it.
final class KeyHolder: Sendable {
    private let key: Mutex<StoreKey?>

    init(_ key: consuming sending StoreKey?) {
        self.key = Mutex(key)
    }

    /// Returns the key at the first call, and `nil` afterwards.
    func take() -> StoreKey? {
        key.withLock { key in
            let taken = key.take()
            return taken
        }
    }

    func takeOne() throws -> StoreKey {
        guard let key = take() else { throw ToolError(.failure, "the key was already used") }
        return key
    }
}
