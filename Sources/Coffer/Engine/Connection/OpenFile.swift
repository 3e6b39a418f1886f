/// An open file under a key that was proven to fit, and everything that opening it again needs.
final class OpenFile {
    let handle: Handle
    let key: RawKey
    let file: FileLocation
    let profile: CipherProfile
    /// The keyring that gave the key; `nil` for a key of its own.
    let keyring: OpenKeyring?

    init(
        handle: Handle, key: consuming RawKey, file: FileLocation, profile: CipherProfile,
        keyring: OpenKeyring? = nil
    ) {
        self.handle = handle
        self.keyring = keyring
        self.key = key
        self.file = file
        self.profile = profile
        let report = DamageReport()
        // A weak reference would slow down each retain of this object. `deinit` ends the closure.
        handle.failures.damagedPages = { [unowned(unsafe) self] in report.pages(self) }
    }

    deinit {
        handle.failures.damagedPages = nil
    }
}
