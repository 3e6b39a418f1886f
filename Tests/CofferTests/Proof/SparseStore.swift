import Foundation
import Workload

@testable import Coffer

/// A store with many free pages, and what must be left of it however its compaction ends: every
/// row, in its old pages or its new ones.
struct SparseStore {
    /// Of how many pages a file is, and how many of them are free.
    private struct Size: Equatable {
        let pageCount: Int
        let freeCount: Int

        init(_ store: Store) throws {
            func count(_ name: String) throws -> Int {
                let count: Int? = try store.read { tx in
                    try tx.scalar(SQL(text: "PRAGMA \(name)"))
                }
                return count ?? -1
            }
            pageCount = try count("page_count")
            freeCount = try count("freelist_count")
        }
    }

    let journalMode: Configuration.JournalMode
    private let folder: TemporaryFolder
    private let path: String
    private let rows: [[Value]]
    private let old: Size
    private let new: Size

    /// Makes the store. Each row has a random value of `rowByteCount` bytes; half of the rows are
    /// deleted again.
    init(
        _ journalMode: Configuration.JournalMode, rowCount: Int, rowByteCount: Int
    ) throws {
        self.journalMode = journalMode
        folder = try TemporaryFolder()
        path = folder.path("original.db")
        let store = try Store(
            path: path, key: .numbered(1), configuration: .testing(journalMode))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v, w UNIQUE)")
            for number in 0..<2 * rowCount {
                try tx.execute(
                    "INSERT INTO t(v, w) VALUES (randomblob(\(rowByteCount)), \(number))")
            }
        }
        try store.write { tx in try tx.execute("DELETE FROM t WHERE id % 2 = 0") }
        rows = try Self.rows(of: store)
        old = try Size(store)
        try store.close()
        let copy = try folder.copy(path, as: "new.db")
        let compacted = try Store(
            path: copy, key: .numbered(1), configuration: .testing(journalMode))
        try compacted.compact()
        new = try Size(compacted)
        try compacted.close()
        guard rows.count == rowCount, old.freeCount > 0, new.freeCount == 0 else {
            throw WorkloadError("\(rows.count) rows, \(old), compacted \(new)")
        }
    }

    /// Copies the store into a folder of its own, under the name `store.db`.
    func copy() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try FileManager.default.copyItem(atPath: path, toPath: folder.path())
        return folder
    }

    /// Lists the problems of a store whose compaction was done or cut off, and then compacts it.
    ///
    /// - Parameter isDone: Whether the compaction was done.
    func problems(
        _ folder: TemporaryFolder, isDone: Bool, configuration: Configuration? = nil
    ) -> [String] {
        do {
            let found = try open(folder, configuration)
            let size = try Size(found)
            var problems = try contentProblems(found)
            if size != new, isDone || size != old { problems.append("\(size), done: \(isDone)") }
            // A WAL without its last frames is not damage, and is gone at the next opening.
            try found.close()
            let store = try open(folder, configuration)
            defer { try? store.close() }
            let report = try store.verify()
            if !report.isGood { problems.append("verification: \(report.problems)") }
            try store.compact()
            problems += try contentProblems(store)
            if try Size(store) != new { problems.append("not compacted") }
            try store.close()
            let names = try names(in: folder)
            return problems + (names == ["store.db"] ? [] : ["left: \(names)"])
        } catch {
            return ["\(error)"]
        }
    }

    private func open(_ folder: TemporaryFolder, _ configuration: Configuration?) throws -> Store {
        try Store(
            path: folder.path(), key: .numbered(1), mode: .mustExist,
            configuration: configuration ?? .testing(journalMode))
    }

    func names(in folder: TemporaryFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
    }

    private func contentProblems(_ store: Store) throws -> [String] {
        let found = try Self.rows(of: store)
        return found == rows ? [] : ["other rows: \(found.count) of \(rows.count)"]
    }

    private static func rows(of store: Store) throws -> [[Value]] {
        try store.read { tx in try tx.rows("SELECT id, v, w FROM t ORDER BY id").map(\.values) }
    }
}
