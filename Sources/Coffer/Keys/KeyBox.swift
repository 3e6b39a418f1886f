/// Carries a key, or an optional one, to another thread. The last holder to let go wipes it.
final class KeyBox<Key: ~Copyable & Sendable>: Sendable {
    let key: Key

    init(_ key: consuming Key) {
        self.key = key
    }
}
