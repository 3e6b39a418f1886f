import Foundation
import Testing

@testable import Coffer

/// A store that Python wrote and encrypted, and what SQLite's `dbstat` reported for each page; see
/// Tests/Vectors/owners.py.
struct OwnerVectors: Decodable {
    struct Page: Decodable {
        let content: String
        let isRoot: Bool

        /// What is known about the page if it is the only damaged one. For a root it is unknown
        /// whether there are pages below.
        var contentIfDamaged: String {
            guard isRoot else { return content }
            return content.replacingOccurrences(of: "a leaf of", with: "a page of")
                .replacingOccurrences(of: "an interior page of", with: "a page of")
        }

        /// The table, index or list, without the role.
        var owner: String { Self.owner(content) }

        static func owner(_ content: String) -> String {
            let roles = ["a leaf of ", "an interior page of ", "overflow of ", "a page of "]
            guard let role = roles.first(where: content.hasPrefix) else { return content }
            return String(content.dropFirst(role.count))
        }
    }

    let profile: String
    let key: String
    let salt: String
    let pages: [Page]

    static let shared: OwnerVectors? = KeyVectors.decode("owners.json")

    static let url = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Vectors/owners.db").standardized

    /// The pages in the clear, page 1 first.
    func plaintext() throws -> [[UInt8]] {
        let profile = try KeyVectors.profile(named: profile)
        let key = try KeyVectors.rawKey(hex: key, salt: salt)
        let authenticator = PageAuthenticator(key: key, profile: profile)
        let file = try Data(contentsOf: Self.url)
        let size = profile.pageByteCount
        try #require(file.count == pages.count * size)
        var plaintext: [[UInt8]] = []
        for number in 1...pages.count {
            let page = [UInt8](file[(number - 1) * size..<number * size])
            let isAuthentic = page.withUnsafeBytes {
                authenticator.authenticates($0, number: number)
            }
            try #require(isAuthentic)
            let bytes = page.withUnsafeBytes {
                profile.decrypt($0, number: number, key: key)
            }
            plaintext.append(try #require(bytes))
        }
        return plaintext
    }
}
