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

    /// Unwraps the root by a credential.
    ///
    /// - Throws: As `KeyringArea.unlocked`.
    func unlocked(
        by credential: borrowing KeyCredential, memoryMax: Int
    ) throws(StoreError) -> UnlockedKeyring {
        do throws(StoreError) {
            return try area.unlocked(by: credential, memoryMax: memoryMax)
        } catch  where error.code == .wrongKey {
            throw error.with(
                hint: "A slot may have been removed or changed since. Keyring.replicated(to:) "
                    + "lists those that the replica has.")
        }
    }

    package var bytes: [UInt8] { area.bytes }

    /// Grows with each change of the keyring.
    package var generation: UInt64 { area.content.generation }

    /// The public part: slots, and the ids and ages of the keys. Reading it needs no credential.
    package var keyring: Keyring { Keyring(area.content, isWhole: true) }
}
