import Testing
import Workload

@testable import Coffer

/// Which rows of a list came, went, moved and changed.
@Suite(.againstHanging, .onOwnThreads) struct RowDifferenceTests {
    private struct Item: Record, Equatable, Hashable, Identifiable {
        var id: Int
        var name = ""
        var rank = 0
    }

    private func difference(_ old: [Item], _ new: [Item]) -> RowDifference<Item> {
        RowDifference(from: old, to: new, by: \.id)
    }

    @Test func `a difference has the indices of each list`() {
        let old = ["a", "b", "c", "d", "e"].enumerated().map { Item(id: $0, name: $1) }
        let new = [
            Item(id: 4, name: "e"), Item(id: 9, name: "new"), Item(id: 0, name: "A"),
            Item(id: 2, name: "c"), Item(id: 3, name: "d"),
        ]
        let change = difference(old, new)
        #expect(change.removed.map(\.index) == [1] && change.removed.map(\.row) == [old[1]])
        #expect(change.inserted.map(\.index) == [1] && change.inserted.map(\.row) == [new[1]])
        #expect(change.moved.map(\.from) == [4] && change.moved.map(\.to) == [0])
        #expect(change.updated.map(\.index) == [2] && change.updated.map(\.row) == [new[2]])
        #expect(change.applied(to: old) == new)
        #expect(change.applied(to: new.dropLast()) == nil)
        #expect(difference(new, new).isEmpty && difference([], []).isEmpty)
    }

    @Test func `a row that moves and changes is in both lists`() {
        let old = [Item(id: 1), Item(id: 2), Item(id: 3)]
        let new = [Item(id: 3, name: "x"), Item(id: 1), Item(id: 2)]
        let change = difference(old, new)
        #expect(change.moved.map(\.row) == [new[0]] && change.updated.map(\.row) == [new[0]])
        #expect(change.removed.isEmpty && change.inserted.isEmpty)
        #expect(change.applied(to: old) == new)
    }

    /// The greatest number of rows that keep their order, by trying all subsets.
    private func greatestOrderedCount(_ old: [Item], _ new: [Item]) -> Int {
        let places = new.compactMap { row in old.firstIndex { $0.id == row.id } }
        return (0..<1 << places.count).lazy.map { subset -> Int in
            let chosen = places.indices.filter { subset >> $0 & 1 == 1 }.map { places[$0] }
            return zip(chosen, chosen.dropFirst()).allSatisfy(<) ? chosen.count : 0
        }.max() ?? 0
    }

    @Test func `applying a difference to the old list gives the new one, of any lists`() {
        var random = SeededGenerator(for: #function)
        for round in 0..<(isLongRun ? 100_000 : 5_000) {
            // Some identities occur several times in every second round.
            let isUnique = round % 2 == 0
            func list() -> [Item] {
                let count = Int.random(in: 0...9, using: &random)
                var ids = Array((0..<12).shuffled(using: &random).prefix(count))
                if !isUnique { ids = ids.map { $0 % 4 } }
                return ids.map { Item(id: $0, rank: Int.random(in: 0...1, using: &random)) }
            }
            let (old, new) = (list(), list())
            let change = difference(old, new)
            #expect(change.applied(to: old) == new)
            #expect(change.isEmpty == (old == new))
            #expect(change.removed.count - change.inserted.count == old.count - new.count)
            #expect(change.inserted.allSatisfy { new[$0.index] == $0.row })
            #expect(change.removed.allSatisfy { old[$0.index] == $0.row })
            #expect(
                change.moved.allSatisfy { new[$0.to] == $0.row && old[$0.from].id == $0.row.id })
            #expect(change.updated.allSatisfy { new[$0.index] == $0.row })
            guard isUnique else { continue }
            let common = Set(old.map(\.id)).intersection(new.map(\.id)).count
            #expect(change.removed.count == old.count - common)
            #expect(change.moved.count == common - greatestOrderedCount(old, new))
        }
    }

    @Test func `a long list in another order takes no square of its length`() {
        let old = (0..<50_000).map { Item(id: $0) }
        var random = SeededGenerator(for: #function)
        for new in [Array(old.reversed()), old.shuffled(using: &random)] {
            #expect(difference(old, new).applied(to: old) == new)
        }
    }

    @Test func `the differences of an observed list add up to it`() async throws {
        var random = SeededGenerator(for: #function)
        let fixture = try ObservationFixture()
        let query = Item.order(by: \.rank).order(by: \.id)
        let observed = fixture.store.observe { tx in try tx.fetch(query) }.includingDuplicates()
        var loop = observed.differences().makeAsyncIterator()
        let first = try #require(try await loop.next())
        #expect(first.isEmpty)
        var list: [Item] = []
        for round in 1...(isLongRun ? 1_000 : 100) {
            // The new row makes each round a difference.
            let new = Item(id: 1000 + round, rank: Int.random(in: 0..<50, using: &random))
            let changed = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                Item(
                    id: Int.random(in: 0..<20, using: &random),
                    rank: Int.random(in: -25..<50, using: &random))
            }
            try await fixture.store.write { tx in
                try tx.insert(new)
                for item in changed {
                    if item.rank >= 0 {
                        try tx.upsert(item)
                    } else {
                        _ = try tx.delete(Item.self, key: item.id)
                    }
                }
            }
            let change = try #require(try await loop.next())
            list = try #require(change.applied(to: list))
            #expect(list == (try fixture.read { tx in try tx.fetch(query) }))
        }
        // A commit that changes no row is not an empty difference.
        try fixture.run("UPDATE item SET name = name")
        async let next = loop.next()
        try await fixture.store.write { tx in try tx.insert(Item(id: -1, rank: -1)) }
        #expect(try await next?.inserted.map(\.index) == [0])
    }

    @Test @MainActor func `differences come on the main actor`() async throws {
        let fixture = try ObservationFixture()
        var list: [Item] = []
        let token = fixture.store.observe { tx in try tx.fetch(Item.order(by: \.id)) }
            .differences(by: \.id)
            .start { error in
                Issue.record(error)
            } onChange: { change in
                list = change.applied(to: list) ?? []
            }
        for id in [5, 3, 4] {
            try fixture.write { tx in try tx.insert(Item(id: id)) }
            try await yieldWhile { !list.contains { $0.id == id } }
        }
        #expect(list.map(\.id) == [3, 4, 5])
        token.cancel()
    }
}
