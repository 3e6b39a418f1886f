import Coffer
import Foundation

/// Rows that show whether a write is there completely, in part or not at all.
///
/// Each write puts an entry into two tables and counts it in a third, so that it changes pages of
/// several trees, some with overflow pages. What the entry holds follows from its numbers.
public enum Ledger {
    /// One write: a worker and the number of its write, counted from 1.
    public struct Entry: Hashable, Sendable {
        public let worker: Int
        public let number: Int

        public init(worker: Int, number: Int) {
            self.worker = worker
            self.number = number
        }

        /// Mostly short; every seventh needs overflow pages.
        var filler: [UInt8] {
            let byteCount = number % 7 == 3 ? 9000 : number * 37 % 600
            let byte = UInt8(truncatingIfNeeded: worker * 31 + number)
            return [UInt8](repeating: byte, count: byteCount)
        }
    }

    /// What a store holds, and the contradictions in it.
    public struct Contents: Sendable {
        public var entries: Set<Entry> = []
        public var problems: [String] = []

        /// The highest number of a worker, 0 if it has none.
        public func count(of worker: Int) -> Int {
            entries.lazy.filter { $0.worker == worker }.map(\.number).max() ?? 0
        }
    }

    public static func create(_ tx: borrowing WriteTransaction) throws {
        try tx.execute(
            """
            CREATE TABLE entry(
                worker INTEGER, number INTEGER, filler BLOB, PRIMARY KEY (worker, number))
            """)
        try tx.execute(
            """
            CREATE TABLE twin(worker INTEGER, number INTEGER, PRIMARY KEY (number, worker))
            WITHOUT ROWID
            """)
        try tx.execute("CREATE TABLE total(worker INTEGER PRIMARY KEY, count INTEGER NOT NULL)")
        for worker in 0..<workerCount { try tx.execute("INSERT INTO total VALUES (\(worker), 0)") }
    }

    public static let workerCount = 8

    /// Deletes all entries.
    public static func clear(_ tx: borrowing WriteTransaction) throws {
        for table in ["entry", "twin"] { try tx.execute("DELETE FROM \(identifier: table)") }
        try tx.execute("UPDATE total SET count = 0")
    }

    public static func post(_ entry: Entry, _ tx: borrowing WriteTransaction) throws {
        let (worker, number) = (entry.worker, entry.number)
        try tx.execute("INSERT INTO entry VALUES (\(worker), \(number), \(entry.filler))")
        try tx.execute("INSERT INTO twin VALUES (\(worker), \(number))")
        try tx.execute("UPDATE total SET count = count + 1 WHERE worker = \(worker)")
    }

    /// Reads all of it, and looks for half-done writes and changed values.
    public static func contents(
        _ tx: borrowing some Reading & ~Copyable
    ) throws -> Contents {
        var contents = Contents()
        for row in try tx.rows("SELECT worker, number, filler FROM entry") {
            let entry = Entry(worker: try row.get(0), number: try row.get(1))
            contents.entries.insert(entry)
            // Without optimisation arrays are compared byte by byte, which takes most of a test.
            if try row.get(2, as: Data.self) != Data(entry.filler) {
                contents.problems.append("\(entry) was altered")
            }
        }
        var twins: Set<Entry> = []
        for row in try tx.rows("SELECT worker, number FROM twin") {
            twins.insert(Entry(worker: try row.get(0), number: try row.get(1)))
        }
        if twins != contents.entries {
            let halves = twins.symmetricDifference(contents.entries)
            contents.problems.append("half there: \(halves)")
        }
        for row in try tx.rows("SELECT worker, count FROM total") {
            let (worker, count) = (try row.get(0, as: Int.self), try row.get(1, as: Int.self))
            let entryCount = contents.entries.count { $0.worker == worker }
            if count != entryCount {
                contents.problems.append("\(entryCount) entries of \(worker) counted as \(count)")
            }
        }
        return contents
    }
}
