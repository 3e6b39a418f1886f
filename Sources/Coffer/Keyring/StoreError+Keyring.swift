// Internal while no public verb throws these codes.
extension StoreError.Code {
    /// The keyring's bytes are not as its owners wrote them: restore it.
    static let keyringDamaged = Self("keyringDamaged")
    /// A derivation would take more memory or time than is allowed.
    static let tooCostly = Self("tooCostly")
    /// The store's keyring is missing: restore it, or rebuild it from a root backup.
    static let keyringMissing = Self("keyringMissing")
    /// The keyring belongs to another store.
    static let keyringMismatch = Self("keyringMismatch")
    /// The file is older than its keyring says, as a restored copy is.
    static let olderFile = Self("olderFile")
    /// The slot is the only one: nothing would open the keyring without it.
    static let lastSlot = Self("lastSlot")
}
