import Crypto
import CryptoExtras
import Synchronization

/// Turns a store's passphrase or raw key into the key that encrypts its pages.
enum KeyDerivation {
    /// The count only ever grows.
    private static let derivations = Atomic<Int>(0)

    /// How many passphrases this process has derived. Tests use it to show that a pool derives one.
    static var derivationCount: Int { derivations.load(ordering: .relaxed) }

    /// Returns the key that encrypts the pages.
    ///
    /// SQLCipher derives a passphrase in the same way
    /// (<https://www.zetetic.net/sqlcipher/design/>), but for every connection again. Coffer
    /// derives it once and hands out raw keys.
    ///
    /// The result is zeroed when it ends. The crypto library zeroes its own key type, but not the
    /// buffer that it derives into. A copy may remain in freed memory until that memory is reused;
    /// the same happens inside SQLCipher. The caller keeps `key`.
    ///
    /// - Parameters:
    ///   - key: A passphrase is derived; 32 raw bytes are the key; 48 raw bytes also have the salt.
    ///   - salt: The first 16 bytes of the file. Ignored with 48 raw bytes.
    ///   - profile: Chooses the rounds and the hash function of PBKDF2.
    /// - Throws: `StoreError` `.misuse` if the key is invalid or the salt does not have 16 bytes;
    ///   `.engine` if the crypto library fails.
    /// - Complexity: O(rounds) for a passphrase, 0.02 to 0.15 s in a release build; O(1) for a raw
    ///   key. It blocks the thread.
    static func rawKey(
        from key: borrowing StoreKey, salt: [UInt8], profile: CipherProfile
    ) throws(StoreError) -> RawKey {
        try key.check()
        guard key.keyringUse == nil else {
            throw StoreError(
                .misuse, "a credential of a keyring is not the key of a file",
                hint: "Only the verbs that open a store, or make one, take it.")
        }
        let salt = key.salt ?? salt
        guard salt.count == RawKey.saltByteCount else {
            throw StoreError(.misuse, "a salt must have 16 bytes, but this one has \(salt.count)")
        }
        guard key.isPassphrase else {
            return key.withUnsafeBytes { bytes in
                let prefix = UnsafeRawBufferPointer(rebasing: bytes[..<RawKey.byteCount])
                return RawKey(bytes: SecretBytes(copying: prefix), salt: salt)
            }
        }
        derivations.add(1, ordering: .relaxed)
        return RawKey(bytes: try derive(key, salt: salt, profile: profile), salt: salt)
    }

    /// Returns 16 bytes of the system's random number generator, for a new file.
    static func randomSalt() -> [UInt8] {
        .random(byteCount: RawKey.saltByteCount)
    }

    /// Returns the 32 bytes that PBKDF2 derives from the passphrase.
    private static func derive(
        _ passphrase: borrowing StoreKey, salt: [UInt8], profile: CipherProfile
    ) throws(StoreError) -> SecretBytes {
        do {
            // A buffer pointer is one contiguous region, so PBKDF2 reads the passphrase in place.
            let derived = try passphrase.withUnsafeBytes { bytes in
                // "Unchecked" because SQLCipher 3 uses fewer rounds than the library requires.
                try KDF.Insecure.PBKDF2.deriveKey(
                    from: bytes.bindMemory(to: UInt8.self), salt: salt,
                    using: profile.hash == .sha1 ? .insecureSHA1 : .sha512,
                    outputByteCount: RawKey.byteCount,
                    unsafeUncheckedRounds: profile.roundCount)
            }
            return SecretBytes(byteCount: RawKey.byteCount) { target in
                derived.withUnsafeBytes { target.copyMemory(from: $0) }
            }
        } catch {
            throw StoreError(.engine, "PBKDF2 failed", cause: error)
        }
    }
}
