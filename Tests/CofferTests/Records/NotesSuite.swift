import Foundation

@testable import Coffer

/// Tests of queries over forty notes: some values are equal, some are NULL.
protocol NotesSuite {
    var fixture: RecordFixture { get }
}

extension NotesSuite {
    static func makeFixture() throws -> (RecordFixture, [Note]) {
        let fixture = try RecordFixture()
        let notes = (1...40).map { id in
            var note = Note.numbered(id)
            note.rank = Double(id % 7)
            note.note = id % 3 == 0 ? "n\(id % 4)" : nil
            note.created = Date(timeIntervalSince1970: Double(id % 5))
            return note
        }
        try fixture.store.write { tx in try tx.insert(notes) }
        return (fixture, notes)
    }

    func read<T>(_ body: (inout ReadTransaction) throws -> T) throws -> T {
        try fixture.store.read(body)
    }

    func ids(_ condition: Condition<Note>) throws -> [Int] {
        try read { tx in try tx.fetch(Note.where(condition).order(by: \.id)) }.map(\.id)
    }

    /// What the engine means to do for a query.
    func plan<R: Record>(of query: Query<R>) throws -> String {
        try read { tx throws in
            // Makes the function of lists known on this connection.
            _ = try tx.fetch(query)
            let sql = query.selectSQL(try RecordPlan.of(R.self))
            return try tx.rows("EXPLAIN QUERY PLAN \(sql)")
                .map { try $0.get("detail", as: String.self) }.joined(separator: "\n")
        }
    }
}
