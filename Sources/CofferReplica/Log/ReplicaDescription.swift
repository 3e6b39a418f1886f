import Coffer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The first object of a replica, in the clear and never changed: which file it is of.
struct ReplicaDescription: Codable, Equatable, Sendable {
    static let name = "store"
    private static let format = "coffer-replica"

    private let format: String
    private let version: Int
    /// A random number, as 32 hex digits.
    private let replica: String
    /// The salt of the file, as 32 hex digits.
    private let salt: String
    let profile: String
    let pageByteCount: Int
    /// Whether a credential of a keyring opens the replica; `nil` for `false`.
    private let keyring: Bool?

    /// Describes a new replica.
    init(salt: [UInt8], profile: String, pageByteCount: Int, hasKeyring: Bool = false) {
        format = Self.format
        version = 1
        replica = [UInt8].random(byteCount: 16).hexDigits
        self.salt = salt.hexDigits
        self.profile = profile
        self.pageByteCount = pageByteCount
        keyring = hasKeyring ? true : nil
    }

    var hasKeyring: Bool { keyring == true }

    /// Reads the object.
    ///
    /// - Throws: `.remoteDamaged` for bytes that describe no replica; `.unsupported` for a later
    ///   version.
    init(_ bytes: [UInt8], at place: String) throws(StoreError) {
        guard let value = try? JSONDecoder().decode(Self.self, from: Data(bytes)),
            value.format == Self.format, value.number(value.replica)?.count == 16,
            value.number(value.salt)?.count == 16,
            (512...65_536).contains(value.pageByteCount)
        else {
            throw StoreError(
                .remoteDamaged, "the object \(Self.name) of \(place) describes no replica",
                hint: "Name a remote that is empty, or has a replica.")
        }
        guard value.version == 1 else {
            throw StoreError(
                .unsupported, "the replica at \(place) was made by a newer version of Coffer",
                hint: "Update the program.")
        }
        self = value
    }

    /// The description at a remote.
    ///
    /// - Throws: `.notFound` if there is none; as `init`.
    static func existing(_ access: RemoteAccess) async throws -> ReplicaDescription {
        guard let bytes = try await access.read(name) else {
            throw StoreError(
                .notFound, "there is no replica at \(access.remote.place)",
                hint: "Name the remote that a store was replicated to.")
        }
        return try ReplicaDescription(bytes, at: access.remote.place)
    }

    var bytes: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            return Array(try encoder.encode(self))
        }
    }

    var replicaNumber: [UInt8] { number(replica) ?? [] }

    var saltBytes: [UInt8] { number(salt) ?? [] }

    private func number(_ digits: String) -> [UInt8]? {
        let digits = Array(digits.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            let text = String(decoding: digits[index..<index + 2], as: UTF8.self)
            guard text.utf8.allSatisfy({ UInt8(ascii: "+") != $0 && UInt8(ascii: "-") != $0 }),
                let byte = UInt8(text, radix: 16)
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}
