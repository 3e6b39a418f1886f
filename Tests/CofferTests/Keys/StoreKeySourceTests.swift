import Foundation
import Testing

@testable import Coffer

/// Keys from a file, from hexadecimal digits and from the system's generator; a key after a
/// failure.
@Suite(.againstHanging, .onOwnThreads) struct StoreKeySourceTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func bytes(_ key: borrowing StoreKey) -> [UInt8] {
        key.withBytes { Array($0) }
    }

    @Test(arguments: [
        ("secret", "secret"), ("secret\n", "secret"), ("secret\r\n", "secret"),
        ("secret\n\n", "secret\n"), (" se cret ", " se cret "), ("a\u{0}b\n", "a\u{0}b"),
        ("pässwörd\n", "pässwörd"),
    ])
    func `a passphrase from a file is its content without the line end`(
        content: String, expected: String
    ) throws {
        try Data(content.utf8).write(to: folder.url.appending(path: "key"))
        let key = try StoreKey.passphrase(contentsOfFile: folder.path("key"))
        #expect(bytes(key) == Array(expected.utf8))
        let isPassphrase = key.isPassphrase
        #expect(isPassphrase)
    }

    private func code(ofFile name: String) -> StoreError.Code? {
        do {
            _ = try StoreKey.passphrase(contentsOfFile: folder.path(name))
            return nil
        } catch {
            return (error as? StoreError)?.code
        }
    }

    @Test func `a file that is no passphrase is refused`() throws {
        #expect(code(ofFile: "missing") == .notFound)
        try Data().write(to: folder.url.appending(path: "empty"))
        #expect(code(ofFile: "empty") == .misuse)
        try Data("\n".utf8).write(to: folder.url.appending(path: "line"))
        #expect(code(ofFile: "line") == .misuse)
        try Data(repeating: 97, count: 65_537).write(to: folder.url.appending(path: "long"))
        #expect(code(ofFile: "long") == .misuse)
        try Data(repeating: 97, count: 65_536).write(to: folder.url.appending(path: "longest"))
        #expect(code(ofFile: "longest") == nil)
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "folder"), withIntermediateDirectories: false)
        #expect(code(ofFile: "folder") == .io)
    }

    @Test func `hexadecimal digits are the bytes of a raw key`() throws {
        let digits = (0..<32).map { $0 % 2 == 0 ? "0f" : "A0" }.joined()
        let key = try StoreKey.raw(hex: digits)
        #expect(bytes(key) == (0..<32).map { $0 % 2 == 0 ? 0x0f : 0xa0 })
        let isPassphrase = key.isPassphrase
        #expect(!isPassphrase)
        let long = try StoreKey.raw(hex: digits + String(repeating: "7c", count: 16))
        let salt = long.salt
        #expect(salt == [UInt8](repeating: 0x7c, count: 16))
    }

    @Test(arguments: [0, 1, 62, 63, 65, 66, 95, 97])
    func `another number of digits is refused, and not shown`(count: Int) throws {
        do {
            _ = try StoreKey.raw(hex: String(repeating: "d", count: count))
            Issue.record("a key of \(count) digits")
        } catch let error as StoreError {
            #expect(error.code == .misuse)
            #expect(!"\(error)".contains("ddd"))
        }
    }

    @Test(arguments: ["g", "/", ":", "@", "`", " ", "ü"])
    func `a character that is not a digit is refused`(character: String) throws {
        let rest = String(repeating: "0", count: 64 - character.utf8.count)
        do {
            _ = try StoreKey.raw(hex: rest + character)
            Issue.record("a key with \(character)")
        } catch let error as StoreError {
            #expect(error.code == .misuse)
            #expect(!"\(error)".contains("000"))
        }
    }

    @Test func `a random key opens the store that it made, and each is another`() throws {
        let key = StoreKey.random()
        let count = bytes(key).count
        #expect(count == 32)
        #expect(bytes(StoreKey.random()) != bytes(key))
        let store = try Store(path: folder.path(), key: key, configuration: .testing())
        try store.write { tx in try tx.execute("CREATE TABLE t(a)") }
        try store.close()
        try Store(path: folder.path(), key: key, configuration: .testing()).close()
    }

    @Test func `a key can be used again after an opening that failed`() async throws {
        let key = StoreKey.passphrase("secret")
        await expect(.notFound) {
            try await Store(
                path: folder.path(), key: key, mode: .mustExist, configuration: .testing())
        }
        let store = try await Store(path: folder.path(), key: key, configuration: .testing())
        await expect(.alreadyOpen) {
            try await Store(path: folder.path(), key: key, configuration: .testing())
        }
        try await store.close()
        let again = try await Store(path: folder.path(), key: key, configuration: .testing())
        try await again.reopen(with: key)
        let copy = key.copy()
        try await again.rekey(to: .numbered(2))
        try await again.rekey(to: copy)
        try await again.close()
        try Connection(path: folder.path(), key: key).close()
    }

    @Test func `a wrong key is asked for again, with the reason`() async throws {
        let right = try await Store(
            path: folder.path(), key: .passphrase("right"), configuration: .testing())
        try await right.close()
        let answers = ["", "wrong", "right"]
        var failures: [StoreError.Code?] = []
        func ask(_ failure: StoreError?) -> StoreKey? {
            failures.append(failure?.code)
            return .passphrase(answers[failures.count - 1])
        }
        func openHere() throws -> Store {
            try Store.open(
                path: folder.path(), mode: .mustExist, configuration: .testing(), askForKey: ask)
        }
        try await openHere().close()
        #expect(failures == [nil, .misuse, .wrongKey])
        failures = []
        let store = try await Store.open(
            path: folder.path(), mode: .mustExist, configuration: .testing()
        ) { failure in
            await Task.yield()
            return ask(failure)
        }
        try await store.close()
        #expect(failures == [nil, .misuse, .wrongKey])
    }

    @Test func `who gives up gets the last reason, and other errors end the questions`() throws {
        try Store(path: folder.path(), key: .passphrase("right"), configuration: .testing()).close()
        var count = 0
        expect(.wrongKey) {
            try Store.open(path: folder.path(), configuration: .testing()) { failure in
                count += 1
                return failure == nil ? .passphrase("wrong") : nil
            }
        }
        #expect(count == 2)
        expect(.misuse) {
            try Store.open(path: folder.path(), configuration: .testing()) { _ in nil }
        }
        expect(.notFound) {
            try Store.open(
                path: folder.path("missing.db"), mode: .mustExist, configuration: .testing()
            ) { _ in
                count += 1
                return .passphrase("any")
            }
        }
        #expect(count == 3)
        // Another key would not help, so nobody is asked again.
        var configuration = Configuration.testing()
        configuration.profile = .sqlcipher1
        expect(.misuse) {
            try Store.open(path: folder.path("new.db"), configuration: configuration) { failure in
                #expect(failure == nil)
                return .passphrase("any")
            }
        }
        struct Closed: Error {}
        #expect(throws: Closed.self) {
            try Store.open(path: folder.path(), configuration: .testing()) { _ in throw Closed() }
        }
    }
}
