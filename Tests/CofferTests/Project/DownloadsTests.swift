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

    private func run() throws -> String {
        let program = Tool.executable.deletingLastPathComponent()
            .appending(path: "DownloadsProgram").path
        let output = try Tool.runProgram([program, folder.url.path])
        #expect(output.exitCode == 0, "\(output.errorText)")
        return output.text
    }

    private func expected(added: Int, incomplete: Int, reports: Int) -> String {
        """
        store      \(path)
        added      \(added) downloads
        incomplete \(incomplete)
        reports    \(reports)
        newest first
            2026-02-01T09:05:00Z  Planimeter   100 %
            2026-02-01T09:04:00Z  Pantograph   100 %
            2026-02-01T09:03:00Z  Chronometer  100 %
            2026-02-01T09:02:00Z  Theodolite   100 %
        look-up    https://manuals.example/barometer.pdf
            from https://manuals.example/barometer.html, 98304 bytes
            Barometer, a manual: How to use a barometer.

        """
    }

    /// Opens the store with the key that the program has made.
    private func open() throws -> Store {
        let key = StoreKey.raw(try Data(contentsOf: folder.url.appending(path: "key")))
        return try Store(path: path, key: key, mode: .mustExist)
    }

    @Test func `it fetches everything, keeps it, and continues where it was stopped`() throws {
        #expect(try run() == expected(added: 6, incomplete: 6, reports: 32))
        #expect(try run() == expected(added: 0, incomplete: 0, reports: 0))
        // The state after a run that ended in the middle of one file, and before another one.
        let store = try open()
        try store.write { tx in
            try tx.execute("DELETE FROM manual WHERE title LIKE 'Theodolite%'")
            try tx.execute("UPDATE download SET bytesDone = 983040 WHERE title = 'Theodolite'")
            try tx.execute("DELETE FROM download WHERE title = 'Barometer'")
        }
        try store.close()
        #expect(try run() == expected(added: 1, incomplete: 2, reports: 3))
    }

    @Test func `its file has the rows, and nothing in the clear`() throws {
        _ = try run()
        let store = try open()
        try store.read { tx throws in
            let downloads = try tx.rows(
                "SELECT title, bytesDone FROM download ORDER BY created"
            ).map { $0.values }
            #expect(
                downloads == [
                    ["Sextant", 412_160], ["Barometer", 98_304], ["Theodolite", 1_048_576],
                    ["Chronometer", 5_000], ["Pantograph", 65_537], ["Planimeter", 262_144],
                ])
            let manuals = try tx.rows(
                "SELECT title, length(thumbnail) FROM manual WHERE url LIKE '%/%er.pdf' ORDER BY 1"
            ).map { $0.values }
            #expect(
                manuals == [
                    ["Barometer, a manual", 2_048], ["Chronometer, a manual", nil],
                    ["Planimeter, a manual", 2_048],
                ])
        }
        try store.close()
        let bytes = try Data(contentsOf: URL(filePath: path))
        #expect(bytes.range(of: Data("manual".utf8)) == nil)
        let attributes = try FileManager.default.attributesOfItem(
            atPath: folder.url.appending(path: "key").path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(attributes[.size] as? Int == 32)
    }
}
