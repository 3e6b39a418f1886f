import Foundation
import Testing

@testable import Coffer

/// A backup takes the place of a store, whole or not at all.
@Suite(.againstHanging) struct RestoreTests {
    private let folder: TemporaryFolder
    private let path: String
    private let backup: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        backup = folder.path("backup.db")
    }

    private func make(
        _ path: String, _ text: String, key: UInt8, _ mode: Configuration.JournalMode = .delete
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(key), configuration: .testing(mode))
        try connection.execute("CREATE TABLE note(body)")
        try connection.execute("INSERT INTO note VALUES (\(text))")
        connection.close()
    }

    /// A store that has its newest commit in the WAL only, and nobody has it open.
    private func makeOld() throws {
        let made = folder.path("made.db")
        let connection = try Connection(
            path: made, key: .numbered(1), configuration: .testing(.wal))
        try connection.execute("CREATE TABLE note(body)")
        _ = try connection.checkpoint(.truncate)
        try connection.execute("INSERT INTO note VALUES ('old')")
        _ = try folder.copy(made, as: "store.db")
        _ = try folder.copy(made + "-wal", as: "store.db-wal")
        connection.close()
        try FileManager.default.removeItem(atPath: made)
    }

    private func body(_ path: String, key: UInt8) throws -> [[Value]] {
        let connection = try Connection(
            path: path, key: .numbered(key), mode: .mustExist,
            configuration: .testing(.existing))
        defer { connection.close() }
        return try connection.rows("SELECT body FROM note").map(\.values)
    }

    private func restore() throws -> RestoreReport {
        var configuration = Configuration.testing(.existing)
        configuration.busyTimeout = .milliseconds(20)
        return try Store.restore(
            from: backup, key: .numbered(2), to: path, configuration: configuration)
    }

    @Test(arguments: journalModes)
    func `a backup takes the place of a store, which is kept with its WAL under another name`(
        mode: Configuration.JournalMode
    ) throws {
        try makeOld()
        try make(backup, "new", key: 2, mode)
        try FileLocation(path).setPermissions(0o640)
        let report = try restore()
        let old = try #require(report.oldPath)
        #expect(old.hasSuffix("/store.db.old-1"))
        #expect(report.copy.rowCount == 1)
        #expect(try body(path, key: 2) == [[.text("new")]])
        #expect(try FileLocation(path).permissions() == 0o640)
        #expect(try body(old, key: 1) == [[.text("old")]])
        #expect(try body(backup, key: 2) == [[.text("new")]])
        #expect(try restore().oldPath?.hasSuffix(".old-2") == true)
    }

    @Test func `without a store the backup becomes one`() throws {
        try make(backup, "new", key: 2)
        #expect(try restore().oldPath == nil)
        #expect(try body(path, key: 2) == [[.text("new")]])
        // A WAL without its main file may be all that is left of a store.
        try FileManager.default.removeItem(atPath: path)
        try Data([1, 2, 3]).write(to: URL(filePath: path + "-wal"))
        expect(.damaged) { try restore() }
        #expect(FileManager.default.fileExists(atPath: path + "-wal"))
    }

    @Test func `a store that no key opens any more is replaced too`() throws {
        try Data("no store at all".utf8).write(to: URL(filePath: path))
        try make(backup, "new", key: 2)
        let old = try #require(try restore().oldPath)
        #expect(try String(contentsOfFile: old, encoding: .utf8) == "no store at all")
        #expect(try body(path, key: 2) == [[.text("new")]])
    }

    @Test func `a damaged backup, a wrong key and the store itself replace nothing`() throws {
        try make(path, "old", key: 1)
        try make(backup, "new", key: 2)
        let before = try Data(contentsOf: URL(filePath: path))
        expect(.wrongKey) {
            try Store.restore(from: backup, key: .numbered(3), to: path)
        }
        expect(.misuse) { try Store.restore(from: path, key: .numbered(1), to: path) }
        expect(.notFound) {
            try Store.restore(from: folder.path("none.db"), key: .numbered(1), to: path)
        }
        try Damage.flip(backup, at: 4096 + 100)
        expect(.damaged) { try restore() }
        #expect(try Data(contentsOf: URL(filePath: path)) == before)
        #expect(
            try Set(FileManager.default.contentsOfDirectory(atPath: folder.url.path))
                == ["store.db", "backup.db"])
    }

    @Test func `a store that somebody uses is not replaced`() throws {
        try make(backup, "new", key: 2)
        for mode in journalModes {
            try make(path, "old", key: 1, mode)
            let connection = try Connection(
                path: path, key: .numbered(1), mode: .mustExist,
                configuration: .testing(.existing))
            try connection.execute("BEGIN IMMEDIATE")
            try connection.execute("INSERT INTO note VALUES ('held')")
            expect(.busy) { try restore() }
            try connection.execute("COMMIT")
            connection.close()
            let store = try Store(
                path: path, key: .numbered(1), configuration: .testing(.existing))
            expect(.alreadyOpen) { try restore() }
            try store.close()
            try FileManager.default.removeItem(atPath: path)
        }
    }

    @Test func `at every step, the old content or the new one is whole`() throws {
        try make(backup, "new", key: 2)
        for stop in 0..<5 {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
            where name.hasPrefix("store.db") {
                try FileManager.default.removeItem(atPath: folder.path(name))
            }
            try makeOld()
            var step = 0
            let restoration = Restoration(
                configuration: .testing(.existing),
                monitor: CopyMonitor(progress: nil) { false }
            ) { () throws(StoreError) in
                if step == stop { throw StoreError(.cancelled, "stopped") }
                step += 1
            }
            let report = try? restoration.run(from: backup, key: .numbered(2), to: path)
            #expect((report == nil) == (stop < 4), "\(stop)")
            if stop < 4 {
                let whole = stop < 2 ? path : path + ".old-1"
                #expect(try body(whole, key: 1) == [[.text("old")]], "\(stop)")
                // Another run finishes.
                #expect(try restore().oldPath != nil)
            }
            #expect(try body(path, key: 2) == [[.text("new")]], "\(stop)")
            if stop >= 2 { #expect(try body(path + ".old-1", key: 1) == [[.text("old")]]) }
        }
    }
}
