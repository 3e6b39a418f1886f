/// Parameters of scrypt, which set the time and the memory of each guess at a passphrase.
///
/// The block size is always 8, so one derivation takes 2^`log2N` KiB of memory, and `parallelism`
/// times the work of filling them ([RFC 7914](https://www.rfc-editor.org/rfc/rfc7914)).
struct KeyCost: Hashable, Sendable {
    /// The logarithm of N, from 14 to 18.
    let log2N: UInt8
    /// How often the memory is filled, one after the other: from 1 to 16.
    let parallelism: UInt8

    /// 128 MiB and about 0.3 s.
    static let standard = KeyCost(log2N: 17, parallelism: 1)

    /// scrypt's r.
    static let blockSize: UInt8 = 8

    /// The memory that one derivation allocates.
    var memoryByteCount: Int { 128 * Int(Self.blockSize) << Int(log2N) }

    /// Checks the parameters, before anything is allocated.
    ///
    /// - Parameter memoryMax: The most memory that one derivation may take, in bytes.
    /// - Throws: `.tooCostly` for parameters that no keyring may have, or more memory.
    func check(memoryMax: Int) throws(StoreError) {
        guard (14...18).contains(log2N), (1...16).contains(parallelism),
            Int(parallelism) << Int(log2N) <= 1 << 19
        else {
            throw StoreError(
                .tooCostly,
                "the keyring asks for scrypt with N = 2^\(log2N) and p = \(parallelism), more than "
                    + "any keyring of Coffer",
                hint: "Somebody has changed the keyring: restore it from a backup.")
        }
        guard memoryByteCount <= memoryMax else {
            throw StoreError(
                .tooCostly,
                "a derivation of this passphrase takes \(memoryByteCount >> 20) MiB of memory, and "
                    + "\(memoryMax >> 20) MiB are allowed")
        }
    }
}
