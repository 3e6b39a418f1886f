@testable import Coffer

/// The work that a process does beside its copies to a remote.
public enum ReplicatorWork: String, CaseIterable, Sendable {
    case plain
    /// It makes snapshots, and deletes what is not kept, by a clock that is fast.
    case maintained
    /// It rotates the key of its store, and changes the slots of the keyring.
    case keyring

    /// The key of the store.
    public func key() -> StoreKey {
        self == .keyring ? KeyringVerb.key(1) : KeyringVerb.key(0)
    }
}
