import Coffer
import Synchronization

/// Carries a key, or none, into the task that uses it up.
final class KeyHolder: Sendable {
    private let key: Mutex<StoreKey?>

    init(_ key: consuming sending StoreKey?) {
        self.key = Mutex(key)
    }

    /// The key, once.
    func take() -> StoreKey? {
        key.withLock { key in
            let taken = key.take()
            return taken
        }
    }

    func takeOne() throws -> StoreKey {
        guard let key = take() else { throw ToolError(.failure, "the key was used up already") }
        return key
    }
}
