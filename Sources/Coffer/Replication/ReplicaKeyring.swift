/// The keyring of a store, as a replica keeps it: nothing in it is secret.
package struct ReplicaKeyring: Sendable {
    let area: KeyringArea

    init(area: KeyringArea) {
        self.area = area
    }

    /// Reads the bytes of a keyring. Only a credential authenticates them.
    ///
    /// - Throws: `.keyringDamaged`, `.tooCostly`, `.needsNewerProgram`.
    package init(_ bytes: [UInt8]) throws(StoreError) {
        area = try KeyringArea(stored: bytes)
    }

    package var bytes: [UInt8] { area.bytes }

    /// Grows with each change of the keyring.
    package var generation: UInt64 { area.content.generation }

    /// What is in it, without a credential.
    package var keyring: Keyring { Keyring(area.content, isWhole: true) }
}
