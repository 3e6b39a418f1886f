/// Derives each raw key at most once while one file is being opened.
///
/// Making a file and opening it, trying the profiles and then finding out what is wrong ask for
/// the same keys again; each costs up to 0.2 s. Everything kept is wiped when this goes.
final class DerivedKeys {
    private final class Kept {
        let key: RawKey
        let profile: CipherProfile

        init(_ key: consuming RawKey, _ profile: CipherProfile) {
            self.key = key
            self.profile = profile
        }
    }

    private var kept: [Kept] = []
    /// How long all derivations took together.
    private(set) var duration = Duration.zero

    /// Returns the key that `KeyDerivation` derives, from memory if it did before.
    ///
    /// - Parameter key: The same key at every call.
    /// - Throws: As `KeyDerivation.rawKey(from:salt:profile:)`.
    func rawKey(
        from key: borrowing StoreKey, salt: [UInt8], profile: CipherProfile
    ) throws(StoreError) -> RawKey {
        for known in kept
        where known.profile.derivesLike(profile) && known.key.salt == key.salt ?? salt {
            return known.key.copy()
        }
        let beginning = ContinuousClock.now
        let derived = try KeyDerivation.rawKey(from: key, salt: salt, profile: profile)
        if key.isPassphrase { duration += beginning.duration(to: .now) }
        kept.append(Kept(derived.copy(), profile))
        return derived
    }
}
