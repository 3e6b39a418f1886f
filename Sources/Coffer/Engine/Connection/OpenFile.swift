/// An open file under a key that was proven to fit, and everything that opening it again needs.
final class OpenFile {
    let handle: Handle
    let key: RawKey
    let file: FileLocation
    let profile: CipherProfile

    init(
        handle: Handle, key: consuming RawKey, file: FileLocation, profile: CipherProfile
    ) {
        self.handle = handle
        self.key = key
        self.file = file
        self.profile = profile
        let report = DamageReport()
        handle.failures.damagedPages = { [weak self] in self.map(report.pages) ?? [] }
    }
}
