/// The secret that opens a store: a passphrase, or the bytes of a key.
///
/// ```swift
/// let store = try await Store(path: "notes.db", key: .passphrase(text))
/// ```
///
/// The key has one owner and is never printed. Its bytes live in locked memory and are zeroed when
/// the key ends. A store borrows the key and keeps only the derived key, so the same key may be
/// used again after an error. The `String`, `Data` or array that the key was made from belongs to
/// the caller and is not wiped.
///
/// A struct with a key as a property is `~Copyable` itself, and an array cannot hold keys. A
/// program that opens a store again later keeps a closure that makes the key, such as
/// `{ try .passphrase(contentsOfFile: path) }`.
public struct StoreKey: ~Copyable, Sendable {
    /// How the secret's bytes become the key of a file.
    enum Form: Sendable {
        /// A key must be derived from the bytes before it encrypts anything.
        case passphrase
        /// 32 bytes of a key, or 48 with the salt.
        case raw
        /// A credential, which opens the keyring of the store.
        case keyring(KeyringUse)
    }

    /// How a credential opens a keyring.
    struct KeyringUse: Sendable {
        /// The number of the credential's kind in the format.
        let kind: UInt8
        /// The slot of an external secret.
        let slotID: UInt16?
        let acceptsOlderFile: Bool
        let keepsRoot: Bool
    }

    /// The passphrase, the raw key with or without its salt, or the credential's bytes. Zeroed when
    /// the key ends.
    private let secret: SecretBytes
    let form: Form

    /// Takes over a secret of any length. This cannot throw, so `check()` validates it later.
    init(secret: consuming SecretBytes, form: Form) {
        self.secret = secret
        self.form = form
    }

    private init(secret: consuming SecretBytes, isPassphrase: Bool) {
        self.init(secret: secret, form: isPassphrase ? .passphrase : .raw)
    }

    /// Whether a key must be derived from the bytes before it encrypts anything.
    var isPassphrase: Bool { if case .passphrase = form { true } else { false } }

    /// How the key opens a keyring; `nil` for a passphrase or a raw key.
    var keyringUse: KeyringUse? { if case .keyring(let use) = form { use } else { nil } }

    /// A key from a passphrase that a person types.
    ///
    /// The UTF-8 bytes are used as they are, without Unicode normalisation, as by every other
    /// program that uses SQLCipher. Text such as `x'2DD2…'` has no special meaning.
    ///
    /// - Parameter text: Must not be empty. Its bytes are copied once, into memory that is zeroed
    ///   when the key ends.
    public static func passphrase(_ text: String) -> StoreKey {
        passphrase(text.utf8)
    }

    /// A key from the bytes of a passphrase, in any encoding.
    ///
    /// - Parameter bytes: Must not be empty. Copied once, into memory that is zeroed when the key
    ///   ends; wipe the source afterwards. NUL bytes are significant, but PBKDF2 cannot tell `abc`
    ///   from `abc` and a NUL.
    public static func passphrase(_ bytes: some Collection<UInt8>) -> StoreKey {
        StoreKey(secret: SecretBytes(bytes), isPassphrase: true)
    }

    /// A key from bytes that already are a key: random, or derived by the caller.
    ///
    /// Opens about a thousand times faster than a passphrase, because nothing is derived.
    ///
    /// - Parameter bytes: 32 bytes, or 48: the key and then the salt of the file. Copied once,
    ///   into memory that is zeroed when the key ends; wipe the source afterwards.
    public static func raw(_ bytes: some Collection<UInt8>) -> StoreKey {
        StoreKey(secret: SecretBytes(bytes), isPassphrase: false)
    }

    /// A key whose bytes `body` writes directly into locked memory. Every further copy is zeroed.
    ///
    /// - Parameters:
    ///   - isPassphrase: Whether a key must be derived from the bytes before it encrypts anything.
    ///   - maximumByteCount: Room for the bytes. The memory is locked where the system allows it.
    ///   - body: Writes from the start and returns how many bytes are the key. Further bytes that
    ///     it writes are zeroed.
    package init<E: Error>(
        isPassphrase: Bool, maximumByteCount: Int,
        initializing body: (UnsafeMutableRawBufferPointer) throws(E) -> Int
    ) throws(E) {
        var byteCount = 0
        let room = try SecretBytes(byteCount: maximumByteCount) { (bytes) throws(E) in
            byteCount = min(try body(bytes), maximumByteCount)
        }
        let secret = room.withUnsafeBytes {
            SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<byteCount]))
        }
        self.init(secret: secret, isPassphrase: isPassphrase)
    }

    /// The 16 bytes of salt in a raw key of 48 bytes; `nil` for any other key. They are not secret:
    /// every file begins with its salt.
    var salt: [UInt8]? {
        guard case .raw = form, secret.byteCount == RawKey.byteCount + RawKey.saltByteCount else {
            return nil
        }
        return secret.withUnsafeBytes { Array($0[RawKey.byteCount...]) }
    }

    /// Checks that the bytes can be a key.
    ///
    /// - Throws: `StoreError` `.misuse` if the passphrase is empty, or if a raw key has neither
    ///   32 nor 48 bytes. The error contains the number of bytes, but none of the bytes.
    borrowing func check() throws(StoreError) {
        let byteCount = secret.byteCount
        // `KeyCredential.check()` checks a credential, whose size depends on its kind.
        if keyringUse != nil { return }
        if isPassphrase {
            // SQLCipher treats an empty key as no key and would create a plaintext file.
            guard byteCount > 0 else {
                throw StoreError(
                    .misuse, "the passphrase is empty",
                    hint: "Pass at least one character: Coffer writes no plaintext stores.")
            }
            return
        }
        guard [RawKey.byteCount, RawKey.byteCount + RawKey.saltByteCount].contains(byteCount)
        else {
            throw StoreError(
                .misuse,
                "a raw key must have 32 bytes, or 48 with the salt, but this one has \(byteCount)",
                hint: "Decode hex digits to bytes first; pass a text that a person types as "
                    + ".passphrase.")
        }
    }

    /// Lends the bytes to `body`, which must not keep the pointer.
    borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try secret.withUnsafeBytes(body)
    }

    /// Returns a second key of the same kind and bytes, in locked memory of its own.
    public borrowing func copy() -> StoreKey {
        StoreKey(secret: secret.copy(), form: form)
    }
}

extension Optional where Wrapped == StoreKey {
    /// Returns a copy of the key, if there is one.
    borrowing func copy() -> StoreKey? {
        switch self {
        case .some(let key): key.copy()
        case .none: nil
        }
    }
}
