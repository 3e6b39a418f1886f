import Foundation
import Testing

@testable import Coffer

/// The public name of a key, by which inventories are matched.
@Suite(.againstHanging, .onOwnThreads) struct KeyIDTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    @Test func `a passphrase and the raw key that the shell gets for it have the same id`() throws {
        let store = try Store(path: path, key: .passphrase("a b c"), configuration: .testing())
        let id = try store.keyID()
        try store.close()
        let connection = try Connection(path: path, key: .passphrase("a b c"))
        #expect(try connection.keyID() == id)
        let digits = try connection.withShellKey { lines in
            String(decoding: lines, as: UTF8.self)
                .firstMatch(of: #/x'([0-9a-fA-F]{96})'/#).map { String($0.1) }
        }
        connection.close()
        let raw = try Connection(path: path, key: .raw(hex: try #require(digits)))
        #expect(try raw.keyID() == id)
    }

    @Test func `a new key has a new id, and another file with the same key too`() throws {
        let store = try Store(path: path, key: .numbered(1), configuration: .testing())
        let id = try store.keyID()
        try store.rekey(to: .numbered(2))
        #expect(try store.keyID() != id)
        try store.close()
        let other = try Store(
            path: folder.path("other.db"), key: .numbered(1), configuration: .testing())
        #expect(try other.keyID() != id)
        let again = try Store(path: path, key: .numbered(2), configuration: .testing())
        #expect(try again.keyID().description.wholeMatch(of: #/[0-9a-f]{16}/#) != nil)
    }

    @Test func `a store without a file has no key, and so no id`() throws {
        expect(.unsupported) { try Store(.memory).keyID() }
    }
}
