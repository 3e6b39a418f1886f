extension KeyringFile {
    /// A copy of a keyring, at the path that the caller gave.
    ///
    /// - Throws: `.alreadyOpen` for the database of an open store: reading and closing that file
    ///   would end the locks of the store; `.misuse` for a path that cannot be one.
    init(copyAt path: String, of database: FileLocation? = nil) throws(StoreError) {
        let location = try FileLocation(path)
        if case .file(_, let identity) = try location.status() {
            try OpenFiles.require(identity, isFreeAt: location.path)
        }
        self.init(at: location, of: database ?? location)
    }
}
