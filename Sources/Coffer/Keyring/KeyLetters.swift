import Crypto

/// 32 bytes as 56 letters and digits, for paper: 14 groups of four.
///
/// The alphabet is Crockford's (<https://www.crockford.com/base32.html>). The last five letters
/// are a check, so a slip of the pen is found before a key is tried.
enum KeyLetters: String {
    case recoveryKey = "coffer1 recovery"
    case rootBackup = "coffer1 root"
    /// The private key of a recipient.
    case identity = "coffer1 identity"
    /// The public key of a recipient.
    case recipient = "coffer1 recipient"

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let letterCount = 56
    private static let byteCount = 35

    /// Tells the kinds apart, so that one is never taken for another.
    var prefix: String {
        switch self {
        case .recoveryKey: ""
        case .rootBackup: "ROOT-"
        case .identity: "IDENTITY-"
        case .recipient: "RECIPIENT-"
        }
    }

    /// Lends the letters of a secret, in capitals with dashes.
    ///
    /// - Parameter secret: 32 bytes.
    func withText<R: ~Copyable>(
        of secret: borrowing SecretBytes, _ body: (UnsafeRawBufferPointer) throws -> R
    ) rethrows -> R {
        try text(of: secret).withUnsafeBytes(body)
    }

    /// Lends the letters to a body that waits.
    ///
    /// - Parameter secret: 32 bytes.
    func withText<R>(
        of secret: borrowing SecretBytes, waiting body: (UnsafeRawBufferPointer) async throws -> R
    ) async rethrows -> R {
        let letters = KeyBox(text(of: secret))
        // The box keeps the memory, which does not move.
        defer { withExtendedLifetime(letters) {} }
        return try await body(letters.key.withUnsafeBytes { $0 })
    }

    /// The letters of a secret, in capitals with dashes.
    ///
    /// - Parameter secret: 32 bytes.
    func text(of secret: borrowing SecretBytes) -> SecretBytes {
        let prefix = Array(prefix.utf8)
        let count = Self.letterCount + Self.letterCount / 4 - 1
        return SecretBytes(byteCount: prefix.count + count) { text in
            text.copyBytes(from: prefix)
            withChecked(secret) { checked in
                var position = prefix.count
                for index in 0..<Self.letterCount {
                    if index > 0, index.isMultiple(of: 4) {
                        text[position] = UInt8(ascii: "-")
                        position += 1
                    }
                    let bit = index * 5
                    let pair =
                        UInt16(checked[bit / 8]) << 8
                        | (bit / 8 + 1 < Self.byteCount ? UInt16(checked[bit / 8 + 1]) : 0)
                    text[position] = Self.alphabet[Int(pair >> (11 - bit % 8) & 31)]
                    position += 1
                }
            }
        }
    }

    /// The secret that a person has typed: in either case, with or without spaces and dashes, and
    /// with I or L for 1, and O for 0.
    ///
    /// - Throws: `.misuse` for other characters, another number of them, a slip, or letters of the
    ///   other kind. The error contains none of them.
    func secret(_ text: UnsafeRawBufferPointer) throws(StoreError) -> SecretBytes {
        guard Self.kind(of: text) == self else { throw otherKind }
        let letters = text[prefix.utf8.count...]
        let checked = try SecretBytes(byteCount: Self.byteCount) {
            (bytes) throws(StoreError) in
            var count = 0
            for letter in letters where letter != UInt8(ascii: " ") && letter != UInt8(ascii: "-") {
                guard let value = Self.value(letter) else {
                    throw StoreError(
                        .misuse, "\(name) has a character that it cannot have",
                        hint: "It has letters, digits, spaces and dashes, and never a U.")
                }
                guard count < Self.letterCount else { throw wrongCount }
                let shifted = UInt16(value) << (11 - count * 5 % 8)
                bytes[count * 5 / 8] |= UInt8(shifted >> 8)
                if count * 5 / 8 + 1 < Self.byteCount {
                    bytes[count * 5 / 8 + 1] |= UInt8(shifted & 0xff)
                }
                count += 1
            }
            guard count == Self.letterCount else { throw wrongCount }
        }
        let secret = checked.withUnsafeBytes { bytes in
            SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[..<32]))
        }
        let isChecked = withChecked(secret) { expected in
            checked.withUnsafeBytes { $0.elementsEqual(expected) }
        }
        guard isChecked else {
            throw StoreError(
                .misuse, "\(name) has a letter that is not as it was written",
                hint: "Compare it with the paper, group by group.")
        }
        return secret
    }

    private var name: String {
        switch self {
        case .recoveryKey: "a recovery key"
        case .rootBackup: "a root backup"
        case .identity: "an identity"
        case .recipient: "the public key of a recipient"
        }
    }

    /// The kind of a text, by its prefix.
    private static func kind(of text: UnsafeRawBufferPointer) -> KeyLetters {
        let prefixed: [KeyLetters] = [.rootBackup, .identity, .recipient]
        let found = prefixed.first { kind in
            let prefix = kind.prefix.utf8
            return text.count >= prefix.count
                && zip(text, prefix).allSatisfy { capital($0) == $1 }
        }
        return found ?? .recoveryKey
    }

    private var otherKind: StoreError {
        switch self {
        case .recoveryKey:
            StoreError(
                .misuse, "this is not a recovery key: it has the prefix of another kind",
                hint: "A root backup rebuilds a lost keyring; it opens no store.")
        case .rootBackup:
            StoreError(
                .misuse, "a root backup begins with \(prefix)",
                hint: "A recovery key is a credential: open the store with it.")
        case .identity:
            StoreError(
                .misuse, "an identity begins with \(prefix)",
                hint: "Pass the private key of the recipient, not the public one.")
        case .recipient:
            StoreError(
                .misuse, "the public key of a recipient begins with \(prefix)",
                hint: "A private key must never be given in its place.")
        }
    }

    private var wrongCount: StoreError {
        StoreError(
            .misuse, "\(name) has \(Self.letterCount) letters and digits",
            hint: "Compare it with the paper, group by group.")
    }

    /// Lends the 32 bytes and the three bytes that check them.
    private func withChecked<R>(
        _ secret: borrowing SecretBytes, _ body: (UnsafeRawBufferPointer) -> R
    ) -> R {
        let checked = SecretBytes(byteCount: Self.byteCount) { bytes in
            secret.withUnsafeBytes { bytes.copyMemory(from: $0) }
            var hash = SHA256()
            hash.update(data: Array(rawValue.utf8))
            secret.withUnsafeBytes { hash.update(bufferPointer: $0) }
            for (index, byte) in hash.finalize().prefix(3).enumerated() {
                bytes[RootKey.byteCount + index] = byte
            }
        }
        return checked.withUnsafeBytes(body)
    }

    private static func capital(_ letter: UInt8) -> UInt8 {
        letter >= 0x61 && letter <= 0x7a ? letter - 0x20 : letter
    }

    private static func value(_ letter: UInt8) -> UInt8? {
        let capital = capital(letter)
        switch capital {
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        case UInt8(ascii: "O"): return 0
        default: return alphabet.firstIndex(of: capital).map { UInt8($0) }
        }
    }
}
