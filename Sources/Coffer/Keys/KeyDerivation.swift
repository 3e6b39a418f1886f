import Crypto
import CryptoExtras
import Synchronization

/// From what opens a store to what encrypts its pages.
enum KeyDerivation {
    /// Only ever grows.
    private static let derivations = Atomic<Int>(0)

    /// How many passphrases this process has derived: the tests show that a pool costs one.
    static var derivationCount: Int { derivations.load(ordering: .relaxed) }

    /// Returns the key that encrypts the pages.
    ///
    /// SQLCipher derives a passphrase in the same way
    /// (<https://www.zetetic.net/sqlcipher/design/>), but anew for each connection; Coffer does it
    /// once and hands out raw keys.
    ///
    /// The result is zeroed when it ends. The crypto library zeroes its own key type, but not the
    /// buffer that it derives into: a copy may stay in freed memory until that is used again, as
    /// it does inside SQLCipher. `key` stays the caller's.
    ///
    /// - Parameters:
    ///   - key: A passphrase is derived; 32 raw bytes are the key; 48 bring their own salt.
    ///   - salt: The first 16 bytes of the file. Ignored with 48 raw bytes.
    ///   - profile: Chooses the rounds and the hash function of PBKDF2.
    /// - Throws: `StoreError` `.misuse` if the key cannot be one, or the salt has not 16 bytes;
    ///   `.engine` if the crypto library fails.
    /// - Complexity: O(rounds) for a passphrase, 0.02 to 0.15 s in a release build; O(1) for a raw
    ///   key. It blocks the thread.
    static func rawKey(
        from key: borrowing StoreKey, salt: [UInt8], profile: CipherProfile
    ) throws(StoreError) -> RawKey {
        try key.check()
        let salt = key.salt ?? salt
        guard salt.count == RawKey.saltByteCount else {
            throw StoreError(.misuse, "a salt has 16 bytes, but this one has \(salt.count)")
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
        var generator = SystemRandomNumberGenerator()
        return (0..<RawKey.saltByteCount).map { _ in generator.next() }
    }

    /// Returns PBKDF2 of the passphrase, 32 bytes.
    private static func derive(
        _ passphrase: borrowing StoreKey, salt: [UInt8], profile: CipherProfile
    ) throws(StoreError) -> SecretBytes {
        do {
            // A buffer pointer is one region, so PBKDF2 reads the passphrase where it is.
            let derived = try passphrase.withUnsafeBytes { bytes in
                // "Unchecked" because SQLCipher 3 has fewer rounds than the library asks for.
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
