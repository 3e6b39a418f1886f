import Crypto

/// Checks a page's MAC as SQLCipher does.
///
/// Holds the MAC key inside the hash states of swift-crypto, which zeroes them when the value
/// ends. The key of the pages is only borrowed.
struct PageAuthenticator: ~Copyable, Sendable {
    /// The layout and the hash function of the pages.
    let profile: CipherProfile
    /// An HMAC state with the MAC key and no data; copied for each page.
    private let code: Code

    /// An HMAC with either hash function.
    private enum Code: Sendable {
        case sha1(HMAC<Insecure.SHA1>)
        case sha512(HMAC<SHA512>)
    }

    /// Derives the MAC key from the key of the pages.
    ///
    /// > "we use the output of the previous KDF as the input to this KDF run ... the salt passed in
    /// > to derive the hmac key, while easy to derive and publically known, is not the same as the
    /// > salt used to generate the encryption key"
    /// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L1327>
    ///
    /// - Complexity: O(1): a dozen hash blocks.
    init(key: borrowing RawKey, profile: CipherProfile) {
        self.init(key: key.bytes.symmetricKey(), salt: key.salt, profile: profile)
    }

    /// Derives the MAC key from the key and the salt of the pages.
    init(key: SymmetricKey, salt: [UInt8], profile: CipherProfile) {
        self.profile = profile
        // HMAC_SALT_MASK:
        // https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L131-L138
        let salt = salt.map { $0 ^ 0x3a }
        switch profile.hash {
        case .sha1: code = .sha1(Self.keyed(by: key, salt: salt))
        case .sha512: code = .sha512(Self.keyed(by: key, salt: salt))
        }
    }

    /// Whether the page is unchanged since the holder of the key wrote it under this number.
    ///
    /// > "include the encrypted page data, initialization vector, and page number in HMAC. This
    /// > will prevent both tampering with the ciphertext, manipulation of the IV, or resequencing
    /// > otherwise valid pages out of order in a database"
    /// > <https://github.com/sqlcipher/sqlcipher/blob/v4.6.1/src/sqlcipher.c#L1175>
    ///
    /// The MAC does not cover the salt of page 1, from which the MAC key is derived. Nor does it
    /// cover the padding after the MAC.
    ///
    /// - Parameters:
    ///   - page: One page as it is in the file. A buffer of another size is not authentic.
    ///   - number: The page's number, from 1.
    /// - Returns: `true` if the MAC is right; compared in constant time. A page of zeros is not
    ///   authentic here, although SQLCipher may accept it as an empty page. In a profile without
    ///   MACs no page is authentic.
    /// - Complexity: O(*bytes of a page*).
    borrowing func authenticates(_ page: UnsafeRawBufferPointer, number: Int) -> Bool {
        guard page.count == profile.pageByteCount, profile.pageMAC != .none,
            let number = UInt32(exactly: number), number > 0
        else { return false }
        let numberBytes =
            profile.pageMAC == .littleEndian ? number.littleEndian : number.bigEndian
        let start = profile.ciphertextOffset(ofPage: Int(number))
        let covered = page[start..<profile.macOffset]
        let mac = page[profile.macOffset...].prefix(profile.macByteCount)
        switch code {
        case .sha1(let code): return Self.matches(code, covered, numberBytes, mac)
        case .sha512(let code): return Self.matches(code, covered, numberBytes, mac)
        }
    }

    /// Whether the page is authentic. Page 1 must also begin with the salt, which no MAC covers.
    borrowing func isSound(
        _ page: UnsafeRawBufferPointer, number: Int, salt: [UInt8]
    ) -> Bool {
        if number == 1, !page.starts(with: salt) { return false }
        return authenticates(page, number: number)
    }

    /// Whether `mac` is the MAC of the covered bytes and the page's number. The number is already
    /// in the byte order that the MAC covers.
    private static func matches<H: HashFunction>(
        _ keyed: HMAC<H>, _ covered: Slice<UnsafeRawBufferPointer>, _ number: UInt32,
        _ mac: Slice<UnsafeRawBufferPointer>
    ) -> Bool {
        var code = keyed
        code.update(data: UnsafeRawBufferPointer(rebasing: covered))
        withUnsafeBytes(of: number) { code.update(data: $0) }
        return code.finalize() == UnsafeRawBufferPointer(rebasing: mac)
    }
}

extension PageAuthenticator {
    /// Returns an HMAC keyed with 32 bytes from two rounds of PBKDF2.
    ///
    /// Written out, because the library's own PBKDF2 can throw and this code cannot fail:
    ///
    /// > "F (P, S, c, i) = U_1 \xor U_2 \xor ... \xor U_c", "U_1 = PRF (P, S || INT (i))",
    /// > "U_2 = PRF (P, U_1)" <https://www.rfc-editor.org/rfc/rfc8018#section-5.2>
    ///
    /// The MAC key is on the stack for a moment, and wiped. The hash states are not in locked
    /// memory either, and a search for a key makes thousands of authenticators.
    private static func keyed<H: HashFunction>(by key: SymmetricKey, salt: [UInt8]) -> HMAC<H> {
        let prf = HMAC<H>(key: key)
        return withUnsafeTemporaryAllocation(byteCount: RawKey.byteCount, alignment: 8) { target in
            defer { target.wipe() }
            var block: UInt32 = 0
            for start in stride(from: 0, to: target.count, by: H.Digest.byteCount) {
                block += 1
                var first = prf
                first.update(data: salt)
                withUnsafeBytes(of: block.bigEndian) { first.update(data: $0) }
                let u1 = first.finalize()
                var second = prf
                u1.withUnsafeBytes { second.update(data: $0) }
                let u2 = second.finalize()
                write(u1, xor: u2, to: UnsafeMutableRawBufferPointer(rebasing: target[start...]))
            }
            return HMAC<H>(key: SymmetricKey(data: target))
        }
    }

    /// Writes as many bytes as fit.
    private static func write<H: HashFunction>(
        _ u1: HashedAuthenticationCode<H>, xor u2: HashedAuthenticationCode<H>,
        to target: UnsafeMutableRawBufferPointer
    ) {
        u1.withUnsafeBytes { u1 in
            u2.withUnsafeBytes { u2 in
                for index in 0..<min(target.count, u1.count) {
                    target[index] = u1[index] ^ u2[index]
                }
            }
        }
    }
}
