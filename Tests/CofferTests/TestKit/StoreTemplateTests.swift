import Coffer
import CofferTestKit
import Foundation
import Testing

/// Stores for the tests of programs.
@Suite(.againstHanging, .onOwnThreads) struct StoreTemplateTests {
    private struct Note: Record, Equatable {
        var id: Int
        var title: String
    }

    private struct Unfinished: Error {}

    private func makeTemplate() throws -> StoreTemplate {
        try StoreTemplate { store in
            try store.write { tx in
                try tx.create(Note.self)
                try tx.insert((1...3).map { Note(id: $0, title: "note \($0)") })
            }
        }
    }

    @Test func `each copy has the rows of the template, and no copy sees another`() throws {
        let template = try makeTemplate()
        let (first, second) = (try template.copy(), try template.copy())
        try first.store.write { tx in _ = try tx.delete(Note.all) }
        #expect(try first.store.read { tx in try tx.count(Note.all) } == 0)
        #expect(try second.store.read { tx in try tx.count(Note.all) } == 3)
        #expect(try template.copy().store.read { tx in try tx.count(Note.all) } == 3)
        #expect(first.path != second.path)
    }

    @Test func `a copy outlives its template, opens again, and leaves nothing`() throws {
        var copy: TemporaryStore? = try makeTemplate().copy()
        let path = try #require(copy?.path)
        #expect(try copy?.store.verify().isGood == true)
        try copy?.store.close()
        if let key = copy?.key {
            let again = try Store(path: path, key: key)
            #expect(try again.read { tx in try tx.count(Note.all) } == 3)
            try again.close()
        }
        copy = nil
        let folder = URL(filePath: path).deletingLastPathComponent().path
        #expect(!FileManager.default.fileExists(atPath: folder))
    }

    @Test func `an empty store is there without a template`() throws {
        let temporary = try TemporaryStore()
        try temporary.store.write { tx in try tx.create(Note.self) }
        #expect(try temporary.store.read { tx in try tx.count(Note.all) } == 0)
    }

    @Test func `an error while the template is filled is thrown`() {
        #expect(throws: Unfinished.self) { try StoreTemplate { _ in throw Unfinished() } }
    }
}
