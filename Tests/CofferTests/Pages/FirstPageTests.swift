import Testing

@testable import Coffer

@Suite struct FirstPageTests {
    private func read(_ page: [UInt8], _ store: PageVectors.Store) throws -> FirstPage? {
        let key = try store.rawKey()
        let profile = try store.cipherProfile()
        return page.withUnsafeBytes { FirstPage(decrypting: $0, key: key, profile: profile) }
    }

    @Test(arguments: PageVectors.stores + PageVectors.older)
    func `the header gives pages, page size and reserve`(store: PageVectors.Store) throws {
        let first = try #require(try read(try store.page(1), store))
        #expect(first.reserveByteCount == (try store.cipherProfile().reserveByteCount))
        #expect(first.pageCount == 2)
        #expect(first.pageByteCount == (try store.cipherProfile().pageByteCount))
    }

    /// A writer older than SQLite 3.7.0 leaves a stale number. A file that it made longer or
    /// shorter is not truncated.
    @Test func `a page count that the header does not vouch for is 0`() throws {
        let stale = try #require(PageVectors.stale)
        let first = try #require(try read(try stale.page(1), stale))
        #expect(first.pageCount == 0)
        #expect(first.pageByteCount == 1024)
    }

    @Test(arguments: PageVectors.stores)
    func `another key gives no header`(store: PageVectors.Store) throws {
        let page = try store.page(1)
        let profile = try store.cipherProfile()
        for byte in UInt8.min...UInt8.max {
            let bytes = SecretBytes(byteCount: 32) { $0[0] = byte }
            let key = RawKey(bytes: bytes, salt: try KeyVectors.bytes(hex: store.salt))
            let first = page.withUnsafeBytes {
                FirstPage(decrypting: $0, key: key, profile: profile)
            }
            #expect(first == nil)
        }
    }

    @Test(arguments: PageVectors.stores)
    func `a buffer that is not one page gives no header`(store: PageVectors.Store) throws {
        let page = try store.page(1)
        for other in [[], [0], Array(page.prefix(96)), Array(page.dropLast()), page + [0]] {
            #expect(try read(other, store) == nil)
        }
    }
}
