#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How the values of a bucket become bytes, for a format of your own.
///
/// ```swift
/// let codec = BucketCodec<Profile>(name: "protobuf Profile") { profile in
///     try profile.serializedData()
/// } decode: { bytes in
///     try Profile(serializedBytes: bytes)
/// }
/// let profiles = Bucket<UserID, Profile>("profiles", codec: codec)
/// ```
///
/// The file records the name with the bucket. A bucket that is named with another codec, or with
/// none, throws `.mismatch` instead of decoding bytes of another format.
public struct BucketCodec<Value: Sendable>: Sendable {
    /// The name that the file records. Change it when new bytes mean something else. Then copy the
    /// entries in a migration, from the bucket with the old codec to a new one. Keep the name if
    /// the new codec reads old bytes too.
    public let name: String
    let encode: @Sendable (Value) throws -> Data
    let decode: @Sendable (Data) throws -> Value

    /// Makes a codec of two functions.
    ///
    /// - Parameters:
    ///   - name: The name that the file records: not empty, and not that of a built-in coding
    ///     (`sql`, `json`, `any`, `attachment`). With such a name, every verb throws `.misuse`.
    ///   - encode: Makes the bytes. Its error becomes the cause of a `.mismatch`, and nothing is
    ///     stored.
    ///   - decode: Makes the value from bytes that `encode` gave, also in an earlier version of the
    ///     program. Its error becomes the cause of a `.mismatch`.
    public init(
        name: String, encode: @escaping @Sendable (Value) throws -> Data,
        decode: @escaping @Sendable (Data) throws -> Value
    ) {
        (self.name, self.encode, self.decode) = (name, encode, decode)
    }
}
