import ArgumentParser
import Coffer

/// The name of a slot in lists.
enum LabelOption {
    /// Refuses a name that no slot can have, before anybody types a passphrase.
    ///
    /// - Throws: `ValidationError`.
    static func require(_ label: String?) throws {
        guard let label else { return }
        do {
            try KeySlot.require(label: label)
        } catch let error as StoreError {
            throw ValidationError(error.message)
        }
    }
}
