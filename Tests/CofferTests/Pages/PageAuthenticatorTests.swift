import Crypto
import Testing

@testable import Coffer

@Suite struct PageAuthenticatorTests {
    @Test func `the vectors are there`() {
        #expect(PageVectors.stores.map(\.profile) == ["sqlcipher4", "portable", "sqlcipher3"])
    }

    @Test(arguments: PageVectors.stores)
    func `pages that others encrypted are authentic`(store: PageVectors.Store) throws {
        let authenticator = PageAuthenticator(
            key: try store.rawKey(), profile: try store.cipherProfile())
        for number in 1...2 {
            let page = try store.page(number)
            #expect(page.withUnsafeBytes { authenticator.authenticates($0, number: number) })
        }
    }

    @Test(arguments: PageVectors.older)
    func `pages of older formats are authentic in their own format only, without a MAC never`(
        store: PageVectors.Store
    ) throws {
        #expect(PageVectors.older.count == 3)
        let own = try store.cipherProfile()
        for profile in [CipherProfile.sqlcipher1, .sqlcipher2, .sqlcipher2BigEndian] {
            let authenticator = PageAuthenticator(key: try store.rawKey(), profile: profile)
            for number in 1...2 {
                let page = try store.page(number)
                let isAuthentic = page.withUnsafeBytes {
                    authenticator.authenticates($0, number: number)
                }
                #expect(isAuthentic == (profile == own && own != .sqlcipher1))
            }
        }
    }

    /// Flips one bit of every byte, one at a time. The exceptions are what the MAC does not cover:
    /// the salt of page 1 and the 12 bytes of padding that SHA-1 leaves.
    @Test(.againstHanging, .onOwnThreads, arguments: PageVectors.stores, 1...2)
    func `every flipped byte is found`(store: PageVectors.Store, number: Int) throws {
        let profile = try store.cipherProfile()
        let authenticator = PageAuthenticator(key: try store.rawKey(), profile: profile)
        var page = try store.page(number)
        let paddingCount = profile == .sqlcipher4 ? 0 : 12
        let covered = (number == 1 ? 16 : 0)..<(page.count - paddingCount)
        var foundOffsets: [Int] = []
        for offset in page.indices {
            page[offset] ^= 1 << UInt8(offset % 8)
            let isAuthentic = page.withUnsafeBytes {
                authenticator.authenticates($0, number: number)
            }
            if !isAuthentic { foundOffsets.append(offset) }
            page[offset] ^= 1 << UInt8(offset % 8)
        }
        #expect(foundOffsets == Array(covered))
    }

    @Test(arguments: PageVectors.stores)
    func `a page at another position is not authentic`(store: PageVectors.Store) throws {
        let authenticator = PageAuthenticator(
            key: try store.rawKey(), profile: try store.cipherProfile())
        let page = try store.page(2)
        for number in [Int.min, -1, 0, 1, 3, 2 << 24, 1 << 32 + 2, Int.max] {
            #expect(!page.withUnsafeBytes { authenticator.authenticates($0, number: number) })
        }
    }

    @Test(arguments: PageVectors.stores)
    func `no page is authentic under another key, salt or profile`(
        store: PageVectors.Store
    ) throws {
        let page = try store.page(2)
        let profile = try store.cipherProfile()
        let key = try KeyVectors.bytes(hex: store.key)
        let salt = try KeyVectors.bytes(hex: store.salt)
        func isAuthentic(_ key: [UInt8], _ salt: [UInt8], _ profile: CipherProfile) -> Bool {
            let key = RawKey(bytes: KeyVectors.secret(key), salt: salt)
            let authenticator = PageAuthenticator(key: key, profile: profile)
            return page.withUnsafeBytes { authenticator.authenticates($0, number: 2) }
        }
        #expect(isAuthentic(key, salt, profile))
        #expect(!isAuthentic(Array(key.reversed()), salt, profile))
        #expect(!isAuthentic(key, Array(salt.reversed()), profile))
        for other in KeyVectors.profiles where other != profile {
            #expect(!isAuthentic(key, salt, other))
        }
    }

    @Test(arguments: PageVectors.stores)
    func `a buffer that is not one page is not authentic`(store: PageVectors.Store) throws {
        let authenticator = PageAuthenticator(
            key: try store.rawKey(), profile: try store.cipherProfile())
        let page = try store.page(2)
        let others: [[UInt8]] = [
            [], [0], Array(page.dropLast()), page + [0], page + page,
            [UInt8](repeating: 0, count: page.count),
        ]
        for other in others {
            #expect(!other.withUnsafeBytes { authenticator.authenticates($0, number: 2) })
        }
    }

    @Test(arguments: PageVectors.stores)
    func `page 1 starts a database under its own key only`(store: PageVectors.Store) throws {
        let profile = try store.cipherProfile()
        let key = try store.rawKey()
        let page = try store.page(1)
        func isStart(_ page: [UInt8], flipping bits: UInt8 = 0) -> Bool {
            var bytes = key.bytes.withUnsafeBytes { [UInt8]($0) }
            bytes[0] ^= bits
            return profile.startsADatabase(page, under: SymmetricKey(data: bytes))
        }
        #expect(isStart(page))
        for bits in UInt8(1)...255 { #expect(!isStart(page, flipping: bits)) }
        #expect(!isStart(try store.page(2)))
        #expect(!isStart([]) && !isStart(Array(page.dropLast())))
    }
}
