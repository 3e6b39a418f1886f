import Foundation
import Testing

@testable import Coffer

/// Which bytes reach the disk while a store is rewritten: no plaintext, in no file, whether it has
/// a name or not.
@Suite(.againstHanging, .onOwnThreads) struct CompactionSecrecyTests {
    private static let marker = "MARKER-51c8-plaintext"
    private static let rowCount = 4000

    private let folder: TemporaryFolder
    private let temporary: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        temporary = try TemporaryFolder()
    }

    /// Makes a store of some 4 MB, whose rows and whose index hold the marker.
    private func make(_ mode: Configuration.JournalMode) throws {
        let store = try Store(
            path: folder.path(), key: .numbered(1), configuration: .testing(mode))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT, w TEXT)")
            for number in 0..<Self.rowCount {
                let text = String(repeating: "\(Self.marker) \(number) ", count: 10)
                try tx.execute("INSERT INTO t(v, w) VALUES (\(text), \(Self.marker))")
            }
            try tx.execute("CREATE INDEX i ON t(v)")
            try tx.execute("CREATE VIRTUAL TABLE words USING fts4(v)")
            try tx.execute("INSERT INTO words(v) SELECT v FROM t WHERE id % 10 = 0")
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id % 3 = 0") }
        try store.close()
    }

    /// A process whose temporary files would be in a folder of this test.
    private func peer(_ arguments: [String]) throws -> Peer {
        let path = temporary.url.path
        return try Peer(arguments, under: ["SQLITE_TMPDIR=\(path)", "TMPDIR=\(path)"])
    }

    /// Looks for the marker in all files of both folders, and in those that the process has open.
    /// The descriptor rule allows it: only that process uses the store.
    private func look(at peer: Peer, isMarkerExpected: Bool = false) throws {
        let descriptors = URL(filePath: "/proc/\(peer.processID)/fd")
        var files = [folder.url, temporary.url].flatMap { url in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
            return names.map { url.appending(path: $0).path }
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: descriptors.path) {
            let link = descriptors.appending(path: name).path
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link)
            // Pipes have no path, and devices have no bytes of the store. These folders may be in
            // memory, which is below /dev.
            let isOwn = [folder, temporary].contains { target?.hasPrefix($0.url.path) == true }
            guard let target, isOwn || target.hasPrefix("/") && !target.hasPrefix("/dev/") else {
                continue
            }
            files.append(link)
        }
        #expect(files.count >= 2, "the process has the store open")
        let found = files.filter { file in
            let bytes = (try? Data(contentsOf: URL(filePath: file), options: .uncached)) ?? Data()
            return bytes.range(of: Data(Self.marker.utf8)) != nil
        }
        #expect(found.isEmpty != isMarkerExpected, "\(found)")
        let names = try FileManager.default.contentsOfDirectory(atPath: temporary.url.path)
        if !isMarkerExpected { #expect(names.isEmpty) }
    }

    @Test(arguments: journalModes)
    func `no plaintext reaches a file while a store is compacted, or is killed in it`(
        mode: Configuration.JournalMode
    ) throws {
        try make(mode)
        let arguments = ["compact-stepwise", mode.description, folder.path(), "1"]
        let whole = try peer(arguments)
        var reports: [String] = []
        while let line = whole.line(), line != "compacted" {
            reports.append(line)
            try look(at: whole)
            // Goes no further: the process is killed below while it replaces pages.
            if line.hasPrefix("replacingPages") { break }
            whole.goOn()
        }
        #expect(reports.last?.hasPrefix("replacingPages") == true, "\(reports)")
        whole.kill()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(names.contains { $0.contains(".new-") }, "\(names)")
        let grep = try Tool.runProgram(["grep", "-r", "-l", "-a", Self.marker, folder.url.path])
        #expect(grep.exitCode == 1, "1 means that grep read the files and found nothing")
    }

    @Test func `no plaintext reaches a file while the engine's VACUUM commits`() throws {
        try make(.delete)
        let vacuum = try peer(["vacuum-held", folder.path(), "1"])
        try #require(vacuum.line() == "ready")
        try look(at: vacuum)
        vacuum.goOn()
        #expect(vacuum.finish() == ["vacuumed"])
    }

    /// For the tests above: a sort whose temporary files Coffer never allows.
    @Test func `plaintext in a file without a name is found`() throws {
        try make(.delete)
        let sort = try peer(["sort-on-disk", "delete", folder.path(), "1"])
        try #require(sort.line() == "ready")
        try look(at: sort, isMarkerExpected: true)
        sort.goOn()
        #expect(sort.finish() == ["sorted"])
    }
}
