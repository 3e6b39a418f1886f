/// A database that no other connection can reach: in memory, or a temporary one.
///
/// It has a random key that nobody knows. Pages that the engine might write to disk would be
/// encrypted, and SQLCipher 4 copies pages only between two keyed databases.
enum PrivateDatabase {
    static func open(
        _ location: Location, profile: CipherProfile?, configuration: Configuration,
        cacheByteCount: Int
    ) throws(StoreError) -> (Handle, CipherProfile) {
        let capabilities = try Engine.capabilities
        let profile = profile ?? capabilities.defaultProfile
        try profile.requireOpenable()
        guard capabilities.supports(profile) else {
            throw StoreError(
                .needsNewerEngine, "the profile \(profile) needs SQLCipher 4",
                hint: "Install SQLCipher 4 and build against it.")
        }
        let physical = PhysicalOpen(
            file: FileLocation(engineName: location.kind == .memory ? ":memory:" : ""),
            profile: profile, configuration: configuration, role: .privateDatabase,
            cacheByteCount: cacheByteCount)
        return (try physical.open(key: .random()), profile)
    }
}

extension RawKey {
    /// A key and a salt that nobody knows.
    fileprivate static func random() -> RawKey {
        RawKey(bytes: .random(byteCount: byteCount), salt: KeyDerivation.randomSalt())
    }
}
