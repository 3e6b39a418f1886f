extension Connection {
    /// The state from which a connection to a file can open the file again.
    final class FileState {
        let handle: Handle
        let key: RawKey
        let file: FileLocation
        let profile: CipherProfile

        init(_ opened: consuming Opened) {
            handle = opened.handle
            file = opened.file
            profile = opened.profile
            key = opened.key
            nameDamage()
        }

        init(handle: Handle, key: consuming RawKey, file: FileLocation, profile: CipherProfile) {
            self.handle = handle
            self.key = key
            self.file = file
            self.profile = profile
            nameDamage()
        }

        private func nameDamage() {
            let report = DamageReport()
            handle.damagedPages = { [weak self] in self.map(report.pages) ?? [] }
        }
    }
}
