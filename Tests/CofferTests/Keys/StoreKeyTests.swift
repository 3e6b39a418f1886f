import Foundation
import Testing

@testable import Coffer

@Suite struct StoreKeyTests {
    @Test func `an empty passphrase is refused with .misuse`() throws {
        let keys = 3
        for index in 0..<keys {
            let error = #expect(throws: StoreError.self) {
                let key: StoreKey =
                    switch index {
                    case 0: .passphrase("")
                    case 1: .passphrase([])
                    default: .passphrase(Data())
                    }
                try key.check()
            }
            #expect(error?.code == .misuse)
            #expect(error?.hint != nil)
        }
    }

    @Test(arguments: 0...100)
    func `a raw key has 32 or 48 bytes`(byteCount: Int) {
        let key = StoreKey.raw([UInt8](repeating: 0xab, count: byteCount))
        do throws(StoreError) {
            try key.check()
            #expect([32, 48].contains(byteCount))
        } catch {
            #expect(![32, 48].contains(byteCount))
            #expect(error.code == .misuse)
            #expect("\(error)".contains("\(byteCount)"))
        }
    }

    @Test func `an error about a key shows no byte of it`() throws {
        let error = #expect(throws: StoreError.self) {
            try StoreKey.raw("a raw key typed as text".utf8).check()
        }
        #expect(!"\(try #require(error))".contains("typed"))
    }

    @Test func `only a raw key of 48 bytes carries a salt`() {
        let salt = [UInt8](200...215)
        let bytes = [UInt8](repeating: 1, count: 32) + salt
        let long = StoreKey.raw(bytes)
        let short = StoreKey.raw(bytes.prefix(32))
        let passphrase = StoreKey.passphrase(bytes)
        let salts = [long.salt, short.salt, passphrase.salt]
        #expect(salts == [salt, nil, nil])
    }

    @Test func `text that looks like a raw key stays a passphrase`() throws {
        let text = "x'" + String(repeating: "2d", count: 32) + "'"
        let key = StoreKey.passphrase(text)
        try key.check()
        let isPassphrase = key.isPassphrase
        #expect(isPassphrase)
        #expect(key.withUnsafeBytes { Array($0) } == Array(text.utf8))
    }

    /// The four shapes that a caller has: each is copied byte for byte.
    @Test func `bytes come from any collection`() {
        let bytes = [UInt8](0..<48)
        let array = StoreKey.raw(bytes)
        let data = StoreKey.raw(Data(bytes))
        let slice = StoreKey.raw(([0xff] + bytes)[1...])
        let lazy = StoreKey.raw((0..<48).lazy.map { UInt8($0) })
        #expect(array.withUnsafeBytes { Array($0) } == bytes)
        #expect(data.withUnsafeBytes { Array($0) } == bytes)
        #expect(slice.withUnsafeBytes { Array($0) } == bytes)
        #expect(lazy.withUnsafeBytes { Array($0) } == bytes)
    }

    @Test(arguments: ["a", "correct horse battery staple", "Grüße, 世界 🗝", "a\0b"])
    func `text is taken as UTF-8, not normalised`(text: String) {
        let key = StoreKey.passphrase(text)
        #expect(key.withUnsafeBytes { Array($0) } == Array(text.utf8))
        let composed = StoreKey.passphrase("\u{e9}")
        let decomposed = StoreKey.passphrase("e\u{301}")
        #expect(composed.withUnsafeBytes { $0.count } != decomposed.withUnsafeBytes { $0.count })
    }

    @Test func `a copy is of the same kind and has the same bytes`() {
        let key = StoreKey.raw([UInt8](0..<48))
        let copy = key.copy()
        let kinds = [key.isPassphrase, copy.isPassphrase]
        #expect(kinds == [false, false])
        #expect(copy.withUnsafeBytes { Array($0) } == [UInt8](0..<48))
    }

    /// Compiles only if both kinds of initialiser can consume a key.
    @Test func `a key is consumed by sync and async initialisers`() async throws {
        func sync() throws -> Opened { try Opened(key: .passphrase("text")) }
        #expect(try sync().byteCount == 4)
        #expect(try await Opened(key: .raw([1, 2, 3])).byteCount == 3)
        let key = StoreKey.passphrase("ab")
        #expect(try await Opened(key: key.copy()).byteCount == 2)
        #expect(try await Opened(key: key).byteCount == 2)
    }

    private struct Opened {
        let byteCount: Int

        init(key: consuming StoreKey) throws {
            byteCount = key.withUnsafeBytes { $0.count }
        }

        init(key: consuming StoreKey) async throws {
            await Task.yield()
            byteCount = key.withUnsafeBytes { $0.count }
        }
    }
}
