import Foundation
import Testing

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct KeyLettersTests {
    private let secret = (0..<32).map { (byte: Int) in UInt8((byte * 7 + 200) & 255) }

    private func text(_ letters: KeyLetters) -> String {
        letters.withText(of: KeyVectors.secret(secret)) { String(decoding: $0, as: UTF8.self) }
    }

    private func read(_ text: String, _ letters: KeyLetters = .recoveryKey) throws -> [UInt8] {
        var text = text
        return try text.withUTF8 { bytes in
            plainBytes(try letters.secret(UnsafeRawBufferPointer(bytes)))
        }
    }

    @Test func `letters are read as they were written, however they are typed`() throws {
        let written = text(.recoveryKey)
        #expect(written.count == 69)
        let bare = written.filter { $0 != "-" }
        let spaced = bare.map { "\($0) " }.joined()
        let typed = [
            written, bare, spaced, written.lowercased(),
            written.replacing("1", with: "l").replacing("0", with: "o"),
            written.replacing("1", with: "I").replacing("0", with: "O"),
        ]
        for text in typed { #expect(try read(text) == secret) }
        #expect(try read(text(.rootBackup), .rootBackup) == secret)
        #expect(try read(text(.rootBackup).lowercased(), .rootBackup) == secret)
    }

    @Test func `a slip of one letter is always found`() throws {
        let written = Array(text(.recoveryKey))
        for index in written.indices where written[index] != "-" {
            for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != written[index] {
                var slip = written
                slip[index] = other
                #expect(throws: StoreError.self) { try read(String(slip)) }
            }
        }
    }

    @Test func `a recovery key is never taken for a root backup`() throws {
        let (recovery, root) = (text(.recoveryKey), text(.rootBackup))
        for (text, letters) in [
            (root, KeyLetters.recoveryKey), (recovery, .rootBackup),
            (String(root.dropFirst(5)), .recoveryKey), ("ROOT-" + recovery, .rootBackup),
        ] {
            let error = #expect(throws: StoreError.self) { try read(text, letters) }
            #expect(error?.code == .misuse)
        }
    }

    @Test func `an error does not contain what was typed`() throws {
        let written = text(.recoveryKey)
        for wrong in [
            String(written.dropLast()), written + "0", written.replacing("-", with: "_"),
            "U" + written.dropFirst(), "", "ROOT-", written + written,
        ] {
            let error = try #require(#expect(throws: StoreError.self) { try read(wrong) })
            #expect(error.code == .misuse)
            for group in written.split(separator: "-") {
                #expect(!"\(error)".contains(group))
            }
        }
    }
}
