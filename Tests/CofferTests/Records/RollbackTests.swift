import Coffer
import Testing

/// What a connection remembers of a type must not outlive a rollback.
@Suite(.againstHanging, .onOwnThreads) struct RollbackTests {
    private struct Undo: Error {}

    @Test func `after a rollback removed the new table, the next insert makes it again`() throws {
        let fixture = try RecordFixture()
        let store = fixture.store
        #expect(throws: Undo.self) {
            try store.write { tx throws in
                try tx.insert(Note.numbered(1))
                try tx.update(Note.numbered(1))
                try tx.delete(Note.self, key: 1)
                _ = try tx.find(Note.self, 1)
                throw Undo()
            }
        }
        try store.write { tx throws in
            _ = expect(.notFound) { try tx.update(Note.numbered(1)) }
            #expect(try !tx.delete(Note.self, key: 1))
            #expect(try tx.find(Note.self, 1) == nil)
            #expect(try tx.fetch(Note.all) == [])
            try tx.insert(Note.numbered(2))
            #expect(try tx.updateIfPresent(Note.numbered(2)))
            #expect(try tx.find(Note.self, 2) != nil)
        }
        #expect(try store.read { tx in try tx.fetch(Note.all) } == [.numbered(2)])
    }

    @Test func `upsert makes it again too, and a savepoint may remove it`() throws {
        let fixture = try RecordFixture()
        let store = fixture.store
        try store.write { tx throws in
            #expect(throws: Undo.self) {
                try tx.savepoint { part in
                    try part.upsert(Note.numbered(1))
                    throw Undo()
                }
            }
            try tx.upsert(Note.numbered(2))
        }
        #expect(try store.read { tx in try tx.fetch(Note.all) } == [.numbered(2)])
    }

    @Test func `a table that was dropped and made differently is not written silently`() throws {
        let fixture = try RecordFixture()
        let store = fixture.store
        try store.write { tx throws in
            try tx.insert(Note.numbered(1))
            try tx.execute("DROP TABLE note")
            try tx.execute("CREATE TABLE note(id INTEGER PRIMARY KEY, title TEXT)")
            let error = expect(.mismatch) { try tx.insert(Note.numbered(2)) }
            #expect(error?.column == "pinned")
            _ = expect(.mismatch) { try tx.fetch(Note.all) }
        }
    }
}
