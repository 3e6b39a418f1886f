#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

// Keys from a file, from hexadecimal digits, and from the system's generator.
extension StoreKey {
    /// A new raw key of 32 bytes from the system's secure generator.
    ///
    /// ```swift
    /// let key = StoreKey.random()
    /// let store = try await Store(path: "notes.db", key: key)
    /// key.withBytes { bytes in keychain.save(bytes) }
    /// ```
    ///
    /// Nothing keeps the key but its owner: save it before the store has data.
    public static func random() -> StoreKey {
        StoreKey(isPassphrase: false, maximumByteCount: RawKey.byteCount) { bytes in
            bytes.fillRandomly()
            return bytes.count
        }
    }

    /// A raw key from hexadecimal digits, in upper or lower case, such as 64 of them for 32 bytes.
    ///
    /// - Parameter digits: 64 digits, or 96: the key and then the salt of the file. Belongs to the
    ///   caller and is not wiped.
    /// - Throws: `StoreError` `.misuse` for another number of digits, or another character. The
    ///   error contains none of them.
    public static func raw(hex digits: String) throws -> StoreKey {
        try raw(digits: digits)
    }

    private static func raw(digits: String) throws(StoreError) -> StoreKey {
        let count = digits.utf8.count
        guard [RawKey.byteCount, RawKey.byteCount + RawKey.saltByteCount].contains(count / 2),
            count.isMultiple(of: 2)
        else {
            throw StoreError(
                .misuse, "a raw key must have 64 hexadecimal digits, or 96 with the salt",
                hint: "This text has \(count) bytes. Pass a text that a person types as "
                    + ".passphrase.")
        }
        return try StoreKey(isPassphrase: false, maximumByteCount: count / 2) {
            (bytes) throws(StoreError) in
            var digits = digits.utf8.makeIterator()
            for index in bytes.indices {
                guard let high = digits.next()?.hexadecimalValue,
                    let low = digits.next()?.hexadecimalValue
                else {
                    throw StoreError(.misuse, "a raw key has a character that is not a hex digit")
                }
                bytes[index] = high << 4 | low
            }
            return bytes.count
        }
    }

    /// A passphrase that is the content of a file, without the line end at its end.
    ///
    /// ```swift
    /// let key = try StoreKey.passphrase(contentsOfFile: "/run/secrets/store")
    /// ```
    ///
    /// The bytes go from the file into locked memory, and nowhere else. One line end at the end is
    /// left out, as most editors and tools add one.
    ///
    /// - Parameter path: A file of at most 64 KiB.
    /// - Throws: `StoreError` `.notFound` if there is no file, `.io` if it cannot be read,
    ///   `.misuse` if it is empty or longer.
    public static func passphrase(contentsOfFile path: String) throws -> StoreKey {
        try passphrase(ofFile: path)
    }

    private static let maximumFileByteCount = 65_536

    private static func passphrase(ofFile path: String) throws(StoreError) -> StoreKey {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code: StoreError.Code = errno == ENOENT ? .notFound : .io
            throw StoreError(code, "cannot read the passphrase: \(systemErrorText(errno))")
        }
        defer { close(descriptor) }
        // One byte more shows that the file is too long.
        let room = maximumFileByteCount + 1
        let key = try StoreKey(isPassphrase: true, maximumByteCount: room) {
            (bytes) throws(StoreError) in
            var count = 0
            while count < bytes.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[count...])
                let found = read(descriptor, rest.baseAddress, rest.count)
                if found < 0, errno == EINTR { continue }
                guard found >= 0 else {
                    throw StoreError(.io, "cannot read the passphrase: \(systemErrorText(errno))")
                }
                guard found > 0 else { break }
                count += found
            }
            guard count < room else {
                throw StoreError(
                    .misuse, "the file of the passphrase is longer than \(room - 1) bytes",
                    hint: "Name the file that has the passphrase alone.")
            }
            if count > 0, bytes[count - 1] == UInt8(ascii: "\n") { count -= 1 }
            if count > 0, bytes[count - 1] == UInt8(ascii: "\r") { count -= 1 }
            return count
        }
        try key.check()
        return key
    }

    /// Lends the bytes of the key, for instance to save a key from ``random()``.
    ///
    /// - Parameter body: Must not keep the pointer. A copy that it makes is not wiped by Coffer.
    public borrowing func withBytes<R, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try withUnsafeBytes(body)
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit in ASCII.
    fileprivate var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
