import Testing

@testable import Coffer

/// Pages that Python encrypted by the published layout, without SQLCipher.
///
/// Both engines open the files that the pages make; see Tests/Vectors/pages.py.
struct PageVectors: Decodable {
    struct Store: Decodable, Sendable, CustomTestStringConvertible {
        let profile: String
        let key: String
        let salt: String
        let pages: [String]

        var testDescription: String { profile }

        func cipherProfile() throws -> CipherProfile {
            switch profile {
            case "sqlcipher1": .sqlcipher1
            case "sqlcipher2": .sqlcipher2
            case "sqlcipher2BigEndian": .sqlcipher2BigEndian
            default: try KeyVectors.profile(named: profile)
            }
        }

        func rawKey() throws -> RawKey {
            try KeyVectors.rawKey(hex: key, salt: salt)
        }

        /// The bytes of a page; numbers begin at 1.
        func page(_ number: Int) throws -> [UInt8] {
            try #require(pages.indices.contains(number - 1))
            return try KeyVectors.bytes(hex: pages[number - 1])
        }
    }

    let stores: [Store]
    let stale: Store
    let older: [Store]

    private static let file: PageVectors? = KeyVectors.decode("pages.json")

    static let stores = file?.stores ?? []
    static let stale = file?.stale
    static let older = file?.older ?? []
}
