/// Identifies a file whose first page fits none of the profiles with their usual page sizes.
///
/// It reads only raw pages: the engine has not seen the key yet.
struct Diagnosis {
    let file: FileLocation
    let handle: Handle
    let salt: [UInt8]
    let derived: DerivedKeys
    /// The profiles that were tried, in order.
    let profiles: [CipherProfile]

    /// One of the profiles with another page size, if the MAC of page 1 fits in it; `nil` if it
    /// fits in none. Throws errors of reading page 1 and of deriving a key.
    ///
    /// - Complexity: O(1). No new key is derived: neither the key nor the MAC's key depends on the
    ///   page size.
    func otherPageSize(key: borrowing StoreKey) throws(StoreError) -> CipherProfile? {
        for profile in profiles {
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            for other in Self.resized(profile) where other != profile {
                if try handle.authenticates(page: 1, key: rawKey, profile: other) { return other }
            }
        }
        return nil
    }

    /// The profile of SQLCipher 1 or 2 that fits page 1, `nil` if none does. Throws errors of
    /// reading page 1 and of deriving a key.
    ///
    /// - Complexity: One derivation of 4 000 rounds for a passphrase, about 2 ms.
    func olderFormat(key: borrowing StoreKey) throws(StoreError) -> CipherProfile? {
        let rawKey = try derived.rawKey(from: key, salt: salt, profile: .sqlcipher2)
        for family in [CipherProfile.sqlcipher2, .sqlcipher2BigEndian] {
            for profile in Self.resized(family)
            where try handle.authenticates(page: 1, key: rawKey, profile: profile) {
                return profile
            }
        }
        for profile in Self.resized(.sqlcipher1) where try hasHeader(of: profile, key: key) {
            return profile
        }
        return nil
    }

    /// The error for a file whose page 1 fits no profile. Other pages distinguish a wrong key from
    /// a damaged page 1.
    ///
    /// - Returns: `.damaged` if the MAC of a page from 2 to 8 fits, or page 1 is blank;
    ///   `.unsupported` for a test version of SQLCipher 2; `.notAStore` for a text; `.truncated`
    ///   for fewer than 1 024 bytes that are not 512; otherwise `.wrongKey`.
    /// - Throws: Errors of reading the file and of deriving a key.
    func error(key: borrowing StoreKey) throws(StoreError) -> StoreError {
        for profile in profiles + [.sqlcipher2, .sqlcipher2BigEndian] {
            let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
            for other in Self.resized(profile) {
                // Several, since a torn write may have taken the next page as well.
                for number in 2...8
                where try handle.authenticates(page: number, key: rawKey, profile: other) {
                    return StoreError(
                        .damaged, "the key is right, but the first page of \(file.path) is damaged",
                        hint: "Restore the file from a backup.", pages: [1])
                }
            }
        }
        if try hasHeader(of: .sqlcipher2, key: key) {
            return StoreError(
                .unsupported,
                "\(file.path) was written by a test version of SQLCipher 2, or none of its pages "
                    + "is authentic",
                hint: "The key is right: export the data with the program that wrote the file.")
        }
        let byteCount = try handle.rawByteCount()
        let isShort = byteCount < profiles.map(\.pageByteCount).max() ?? 0
        if let start = try handle.rawBytes(at: 0, count: FirstBytes.count) {
            // With a WAL or journal, the key was tried on the page there.
            if FirstBytes.isBlank(start), !file.hasPendingChanges {
                let bits = start[0] == 0 ? "zeros" : "ones"
                return StoreError(
                    .damaged, "the first page of \(file.path) contains only \(bits)",
                    hint: "It was never written, or is lost: restore the file from a backup.",
                    pages: [1])
            }
            if FirstBytes.isText(start) {
                return StoreError(.notAStore, "\(file.path) is a text file")
            }
            // The rest may be in the WAL or journal, which the key did not open either.
            if byteCount < 2 * FirstBytes.count, byteCount != FirstBytes.count,
                !file.hasPendingChanges
            {
                return StoreError(
                    .truncated,
                    "\(file.path) has \(byteCount) bytes, which is not a whole number of pages",
                    hint: "Its end is missing, or it is not a store: restore it from a backup.")
            }
        }
        let size =
            isShort && !byteCount.isMultiple(of: FirstBytes.count)
            ? ", which has \(byteCount) bytes: not a whole number of pages" : ""
        // A passphrase does not say whether it is the key itself or a credential.
        let keyring = KeyringFile(of: file)
        let lostKeyring =
            keyring.exists
            ? "" : " If it had a keyring, put \(keyring.location.path) next to it first."
        return StoreError(
            .wrongKey, "the key does not open \(file.path)\(size)",
            hint: "Check the key.\(lostKeyring) A file with cipher settings of its own "
                + "(kdf_iter, another HMAC) looks the same. So does one that is not a store, or "
                + "whose first 16 bytes (the salt) were changed: restore that one from a backup"
                + (isShort ? ". So does one whose end is missing." : "."))
    }

    /// Whether page 1 decrypts to a header with the page size of the profile; `false` if the file
    /// is shorter. Without a MAC the header must be convincing: five of its bytes are known, and a
    /// sixth nearly. Throws errors of reading page 1 and of deriving a key.
    private func hasHeader(
        of profile: CipherProfile, key: borrowing StoreKey
    ) throws(StoreError) -> Bool {
        let rawKey = try derived.rawKey(from: key, salt: salt, profile: profile)
        guard let page = try handle.rawPage(1, byteCount: profile.pageByteCount) else {
            return false
        }
        let first = page.withUnsafeBytes {
            FirstPage(decrypting: $0, key: rawKey, profile: profile)
        }
        guard let first else { return false }
        // SQLCipher 1 reserved 16 bytes and SQLCipher 2 reserved 48. SQLCipher 4, when it writes
        // such files, leaves the 80 that it began with.
        return first.pageByteCount == profile.pageByteCount
            && [16, 48, 80].contains(first.reserveByteCount)
    }

    static func needsUpgrade(_ profile: CipherProfile, file: FileLocation) -> StoreError {
        let version = profile.pageMAC == .none ? 1 : 2
        return StoreError(
            .needsUpgrade, "\(file.path) is in the format of SQLCipher \(version)",
            hint: "The key is right: copy the file into a new store with Store.upgrade, or with "
                + "`coffer upgrade`.")
    }

    /// The profile in every page size, its own size first.
    static func resized(_ profile: CipherProfile) -> [CipherProfile] {
        [profile]
            + CipherProfile.pageByteCounts.compactMap(profile.resized).filter { $0 != profile }
    }
}

extension Handle {
    /// A page, counted from 1, as it is in the file, still encrypted; `nil` beyond the file's end.
    ///
    /// - Parameter byteCount: The page size.
    /// - Throws: The error of the read, such as `.io`.
    func rawPage(_ number: Int, byteCount: Int) throws(StoreError) -> [UInt8]? {
        try rawBytes(at: (number - 1) * byteCount, count: byteCount)
    }

    /// Whether the MAC of a page of the file, counted from 1, fits; `false` for a page beyond the
    /// file's end. Throws as `rawPage`.
    func authenticates(
        page number: Int, key: borrowing RawKey, profile: CipherProfile
    ) throws(StoreError) -> Bool {
        guard let page = try rawPage(number, byteCount: profile.pageByteCount) else {
            return false
        }
        let authenticator = PageAuthenticator(key: key, profile: profile)
        return page.withUnsafeBytes { authenticator.authenticates($0, number: number) }
    }
}
