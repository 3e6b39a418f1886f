import Foundation
import Testing
import Workload

@testable import Coffer

/// Conditions on rows that refer to one another, to any depth.
@Suite(.againstHanging, .onOwnThreads) struct TreeConditionTests {
    private let fixture: RecordFixture
    private let folders: [Folder]

    struct Folder: Record, Equatable {
        static var references: [Reference<Self>] { [Reference(\.parent, to: Folder.self)] }
        static var indexes: [Index<Self>] { [Index(\.parent)] }
        var id: Int
        var name: String
        var parent: Int?
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "folders")
        folders = (1...80).map { id in
            Folder(
                id: id, name: "f\(id % 9)",
                parent: id % 13 == 0 || id == 1 ? nil : Int.random(in: 1..<id, using: &random))
        }
        let folders = folders
        try fixture.store.write { tx in try tx.insert(folders) }
    }

    private func ids(_ query: Query<Folder>) throws -> [Int] {
        try fixture.store.read { tx in try tx.fetch(query.order(by: \.id), \.id) }
    }

    private func ancestors(of id: Int) -> Set<Int> {
        var found: Set<Int> = []
        var next = folders[id - 1].parent
        while let id = next, found.insert(id).inserted { next = folders[id - 1].parent }
        return found
    }

    @Test func `descendants and ancestors are those that Swift finds`() throws {
        for id in 1...80 {
            let this = Folder.where(\.id == id)
            let above = ancestors(of: id)
            #expect(try ids(Folder.where(.isAncestor(of: this, by: \.parent))) == above.sorted())
            let below = (1...80).filter { ancestors(of: $0).contains(id) }
            let query = Folder.where(.isDescendant(of: this, by: \.parent))
            #expect(try ids(query) == below)
            #expect(
                try ids(Folder.where(!.isDescendant(of: this, by: \.parent))).count
                    == 80 - below.count)
        }
    }

    @Test func `several roots, limits and other conditions go together`() throws {
        let roots = Folder.where(\.name == "f3").order(by: \.id).limit(4)
        let chosen = Set(folders.filter { $0.name == "f3" }.map(\.id).prefix(4))
        let expected = folders.filter {
            !ancestors(of: $0.id).isDisjoint(with: chosen) && $0.name != "f5"
        }.map(\.id)
        let query = Folder.where(.isDescendant(of: roots, by: \.parent) && \.name != "f5")
        #expect(try ids(query) == expected)
        // The trees of the leaves of a tree.
        let leaves = Folder.where(.isDescendant(of: Folder.where(\.id == 1), by: \.parent))
        let above = Folder.where(.isAncestor(of: leaves, by: \.parent))
        let wanted = Set(
            folders.filter { ancestors(of: $0.id).contains(1) }
                .flatMap { Array(ancestors(of: $0.id)) })
        #expect(try ids(above) == wanted.sorted())
    }

    @Test func `a tree is deleted, updated and joined as any rows are`() throws {
        let below = Folder.where(.isDescendant(of: Folder.where(\.id == 1), by: \.parent))
        let expected = folders.filter { ancestors(of: $0.id).contains(1) }
        let renamed = try fixture.store.write { tx in
            try tx.update(below.set(\.name, to: "below"))
        }
        #expect(renamed == expected.count)
        let pairs = try fixture.store.read { tx in
            try tx.fetch(Folder.order(by: \.id).joining(\.parent, to: below))
        }
        #expect(
            pairs.map(\.0.id)
                == folders.filter { folder in expected.contains { $0.id == folder.parent } }
                .map(\.id))
        try fixture.execute("PRAGMA defer_foreign_keys = ON")
        let deleted = try fixture.store.write { tx throws in
            try tx.execute("PRAGMA defer_foreign_keys = ON")
            return try tx.delete(below)
        }
        #expect(deleted == expected.count)
    }

    @Test func `references that lead in a circle end, and a row in it is its own descendant`()
        throws
    {
        try fixture.execute("UPDATE folder SET parent = 3 WHERE id = 1")
        try fixture.execute("UPDATE folder SET parent = 1 WHERE id = 2")
        try fixture.execute("UPDATE folder SET parent = 2 WHERE id = 3")
        let third = Folder.where(\.id == 3)
        let below = try ids(Folder.where(.isDescendant(of: third, by: \.parent)))
        #expect(below.starts(with: [1, 2, 3]))
        #expect(try ids(Folder.where(.isAncestor(of: third, by: \.parent))) == [1, 2, 3])
        let self2 = Folder.where(.isDescendant(of: Folder.where(\.id == 80), by: \.parent))
        #expect(try !ids(self2).contains(80))
    }

    @Test func `a tree may be ten thousand rows deep`() throws {
        try fixture.store.write { tx throws in
            try tx.delete(Folder.all)
            for id in 1...10_000 {
                try tx.insert(Folder(id: id, name: "", parent: id == 1 ? nil : id - 1))
            }
        }
        let (first, last) = (Folder.where(\.id == 1), Folder.where(\.id == 10_000))
        try fixture.store.read { tx throws in
            #expect(try tx.count(Folder.where(.isDescendant(of: first, by: \.parent))) == 9_999)
            #expect(try tx.count(Folder.where(.isAncestor(of: last, by: \.parent))) == 9_999)
        }
    }

    struct Page: Record, Equatable {
        static var key: [String] { ["site", "path"] }
        static var references: [Reference<Self>] {
            [Reference(\.site, \.above, to: Page.self)]
        }
        var site: Int
        var path: String
        var above: String?
    }

    @Test func `a reference of several columns leads through all of them`() throws {
        try fixture.store.write { tx throws in
            for site in 1...2 {
                try tx.insert(Page(site: site, path: "/", above: nil))
                try tx.insert(Page(site: site, path: "/a", above: "/"))
                try tx.insert(Page(site: site, path: "/a/b", above: "/a"))
            }
            let root = Page.where(\.site == 2 && \.path == "/")
            let below = Page.where(.isDescendant(of: root, by: \.site, \.above))
            let found = try tx.fetch(below.order(by: \.path))
            #expect(found.map(\.path) == ["/a", "/a/b"] && found.allSatisfy { $0.site == 2 })
            let leaf = Page.where(\.site == 1 && \.path == "/a/b")
            let above = Page.where(.isAncestor(of: leaf, by: \.site, \.above))
            #expect(try tx.fetch(above.order(by: \.path)).map(\.path) == ["/", "/a"])
        }
    }

    struct Term: Record {
        static var key: [String] { ["word"] }
        static var references: [Reference<Self>] { [Reference(\.broader, to: Term.self)] }
        var word: String
        var broader: String?
    }

    @Test func `texts match as the foreign key matches them, by the parent's collation`() throws {
        try fixture.execute(
            """
            CREATE TABLE term(word TEXT PRIMARY KEY NOT NULL COLLATE NOCASE,
                broader TEXT REFERENCES term(word))
            """)
        try fixture.execute(
            "INSERT INTO term VALUES ('Thing', NULL), ('Tool', 'THING'), ('Hammer', 'tool')")
        try fixture.store.read { tx throws in
            let thing = Term.where(\.word == "Thing")
            let below = Term.where(.isDescendant(of: thing, by: \.broader)).order(by: \.word)
            #expect(try tx.fetch(below, \.word) == ["Hammer", "Tool"])
            let hammer = Term.where(\.word == "Hammer")
            let above = Term.where(.isAncestor(of: hammer, by: \.broader)).order(by: \.word)
            #expect(try tx.fetch(above, \.word) == ["Thing", "Tool"])
        }
    }

    @Test func `a reference that is not declared is refused, and no table means no rows`() throws {
        struct Loose: Record {
            var id: Int
            var parent: Int?
        }
        struct Branch: Record {
            static var references: [Reference<Self>] { [Reference(\.parent, to: Branch.self)] }
            var id: Int
            var parent: Int?
        }
        try fixture.store.read { tx throws in
            let error = expect(.misuse) {
                try tx.count(Loose.where(.isDescendant(of: Loose.all, by: \.parent)))
            }
            #expect(error?.hint?.contains("references") == true)
            #expect(
                try tx.count(Branch.where(.isDescendant(of: Branch.all, by: \.parent))) == 0)
        }
    }

    @Test func `a query with a tree is observed`() async throws {
        let below = Folder.where(.isDescendant(of: Folder.where(\.id == 1), by: \.parent))
        let store = fixture.store
        let values = store.observe { tx in try tx.count(below) }.makeAsyncIterator()
        let before = try await values.next()
        let id = try #require(folders.first { ancestors(of: $0.id).contains(1) }?.id)
        try await store.write { tx in
            try tx.insert(Folder(id: 1000, name: "new", parent: id))
        }
        let after = try await values.next()
        #expect(after == before.map { $0 + 1 })
    }
}
