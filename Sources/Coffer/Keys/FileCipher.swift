/// A key and the cipher settings of the file that it encrypts.
final class FileCipher: Sendable {
    let key: RawKey
    let profile: CipherProfile

    init(key: consuming RawKey, profile: CipherProfile) {
        self.key = key
        self.profile = profile
    }

    /// The cipher of a new file; a key without a salt gets a random one.
    convenience init(
        new key: borrowing StoreKey, profile: CipherProfile
    ) throws(StoreError) {
        let salt = key.salt ?? KeyDerivation.randomSalt()
        self.init(
            key: try KeyDerivation.rawKey(from: key, salt: salt, profile: profile),
            profile: profile)
    }
}
