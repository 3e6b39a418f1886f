import ArgumentParser
import Coffer

/// The name of a slot in lists.
enum LabelOption {
    /// The option for a run of the tool. A label that is empty needs none.
    static func arguments(_ label: String) -> [String] {
        label.isEmpty ? [] : ["--label=\(label)"]
    }

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
