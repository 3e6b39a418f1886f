import Foundation
import Testing

@testable import Coffer

/// `Examples/Downloads`, run as a newcomer runs it.
@Suite(.againstHanging, .onOwnThreads) struct DownloadsTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path("downloads.db")
    }

    private func run(_ words: [String]) throws -> Tool.Output {
        let program = Tool.executable.deletingLastPathComponent()
            .appending(path: "DownloadsProgram").path
        return try Tool.runProgram([program] + words)
    }

    /// Opens the store with the key that the program has made.
    private func open() throws -> Store {
        let key = StoreKey.raw(try Data(contentsOf: folder.url.appending(path: "key")))
        return try Store(path: path, key: key, mode: .mustExist)
    }

    @Test
    func
        `64 downloads survive broken connections and kills, obey each command, and leave nothing in the clear`()
        throws
    {
        let output = try run(["demo", folder.url.path, "\(testSeed())"])
        #expect(output.exitCode == 0, "\(output.text)\(output.errorText)")
        let lines = output.text.split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
        // The program compares them; a program that compares nothing would end well, too.
        for line in [
            "kill -9 ends fetch 3 yes", "paused 8", "cancelled 4", "failed 2", "removed 4",
            "files that equal the server's, byte by byte 60",
        ] {
            #expect(lines.contains(line), "\(line): \(output.text)")
        }

        let store = try open()
        try store.read { tx throws in
            let counts = try tx.rows("SELECT state, count(*) FROM download GROUP BY 1").map {
                $0.values
            }
            #expect(counts == [["done", 60]])
            // The manuals of removed downloads are gone with them.
            let manuals = AttachmentBucket<UUID>("manuals")
            #expect(try tx.attachments(in: manuals).count == 60)
        }
        try store.close()

        let bytes = try Data(contentsOf: URL(filePath: path))
        #expect(bytes.range(of: Data("Manual".utf8)) == nil)
        #expect(bytes.range(of: Data("http".utf8)) == nil)
        let attributes = try FileManager.default.attributesOfItem(
            atPath: folder.url.appending(path: "key").path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(attributes[.size] as? Int == 32)
    }

    @Test func `words that it does not know get its usage, and exit code 2`() throws {
        for words in [["fetch"], ["fetch", folder.url.path, "manuals/sextant.pdf"], ["x"]] {
            let output = try run(words)
            #expect(output.exitCode == 2)
            #expect(output.errorText.hasPrefix("usage: Downloads"))
        }
    }
}
