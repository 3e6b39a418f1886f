/// Derives each raw key at most once while one file is being opened.
///
/// Creating and then opening a file, trying the profiles, and diagnosing a failure ask for the same
/// keys again. Each derivation costs up to 0.2 s. The kept keys are wiped when this object ends.
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
    /// The total time of all derivations from a passphrase.
    private(set) var duration = Duration.zero

    /// Adds the time of a derivation that was made elsewhere.
    func add(_ duration: Duration) { self.duration += duration }

    /// Returns the key that `KeyDerivation` derives, from memory if it was derived before.
    ///
    /// - Parameter key: Must be the same key in every call.
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
