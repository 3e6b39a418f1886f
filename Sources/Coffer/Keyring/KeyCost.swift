/// Parameters of scrypt, which set the time and the memory of each guess at a passphrase.
///
/// The block size is always 8, so one derivation takes 2^`log2N` KiB of memory, and `parallelism`
/// times the work of filling them ([RFC 7914](https://www.rfc-editor.org/rfc/rfc7914)).
///
/// ```swift
/// // The work of .standard in 16 MiB of memory, for an extension of an app.
/// try store.keys.add(.passphrase(text), label: "me", cost: KeyCost(log2N: 14, parallelism: 8))
/// ```
public struct KeyCost: Hashable, Sendable {
    /// The logarithm of N, from 14 to 18.
    public let log2N: UInt8
    /// How often the memory is filled, one after the other: from 1 to 16.
    public let parallelism: UInt8

    /// 128 MiB and about 0.3 s.
    public static let standard = KeyCost(log2N: 17, parallelism: 1)

    /// Makes a cost. A slot with parameters outside their bounds throws `.tooCostly`; N times the
    /// parallelism is at most 2^19.
    public init(log2N: UInt8, parallelism: UInt8) {
        self.log2N = log2N
        self.parallelism = parallelism
    }

    /// scrypt's r.
    static let blockSize: UInt8 = 8

    /// The memory that one derivation allocates, in bytes.
    public var memoryByteCount: Int { 128 * Int(Self.blockSize) << Int(log2N) }

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
                "scrypt with N = 2^\(log2N) and p = \(parallelism) is outside the bounds: N is "
                    + "from 2^14 to 2^18, p from 1 to 16, and N times p at most 2^19",
                hint: "A keyring that asks for it was changed: restore it from a backup.")
        }
        guard memoryByteCount <= memoryMax else {
            throw StoreError(
                .tooCostly,
                "a derivation of this passphrase takes \(memoryByteCount >> 20) MiB of memory, and "
                    + "\(memoryMax >> 20) MiB are allowed",
                hint: "Raise maximumKeyMemoryByteCount of the configuration.")
        }
    }
}
