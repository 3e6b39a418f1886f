/// A file and its key, as far as a replica needs them.
package struct ReplicaSource: Sendable {
    /// Of the file that is replicated, or is to be made.
    package let path: String
    let cipher: FileCipher

    init(path: String, cipher: FileCipher) {
        (self.path, self.cipher) = (path, cipher)
    }

    /// The file of a replica that is to be restored or looked at. A passphrase is derived.
    ///
    /// - Parameters:
    ///   - path: Of the file that is to be made; empty for none.
    ///   - key: Of the replica's file.
    ///   - salt: Of the replica's file.
    ///   - profile: Its profile, as `profileName` has it.
    ///   - pageByteCount: Bytes of its pages.
    /// - Throws: `.needsNewerEngine` for a profile of SQLCipher 4; `.unsupported` for an unknown
    ///   profile.
    package init(
        path: String, key: borrowing StoreKey, salt: [UInt8], profile: String, pageByteCount: Int
    ) throws(StoreError) {
        let profile = try Self.profile(profile, pageByteCount)
        self.path = path
        cipher = FileCipher(
            key: try KeyDerivation.rawKey(from: key, salt: salt, profile: profile),
            profile: profile)
    }

    private static func profile(
        _ name: String, _ pageByteCount: Int
    ) throws(StoreError) -> CipherProfile {
        let known = [CipherProfile.portable, .sqlcipher3, .sqlcipher4]
        for profile in known.compactMap({ $0.resized(to: pageByteCount) })
        where "\(profile)" == name {
            guard try Engine.capabilities.supports(profile) else {
                throw StoreError(
                    .needsNewerEngine, "the replica is of a file in the profile \(profile)",
                    hint: "Restore it with SQLCipher 4.")
            }
            return profile
        }
        throw StoreError(.unsupported, "the replica is of a file in the profile \(name)")
    }

    /// The salt of the file: 16 bytes, not secret.
    package var salt: [UInt8] { cipher.key.salt }

    package var profileName: String { "\(cipher.profile)" }

    package var pageByteCount: Int { cipher.profile.pageByteCount }

    /// The secret from which all keys of a replica are derived.
    package func secret() -> SecretBytes { cipher.key.replicaSecret() }

    /// Whether a file has this key and this profile.
    func isUnder(_ key: borrowing RawKey, _ profile: CipherProfile) -> Bool {
        key.isEqual(to: cipher.key) && profile == cipher.profile
    }
}

extension RawKey {
    /// The secret from which all keys of a replica are derived: 32 bytes.
    fileprivate borrowing func replicaSecret() -> SecretBytes {
        bytes.expanded(Array("coffer1 replica".utf8) + salt)
    }
}
