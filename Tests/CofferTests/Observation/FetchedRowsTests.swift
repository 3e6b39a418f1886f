import CofferObservation
import Observation
import Testing

@testable import Coffer

/// The models of a screen.
@Suite(.againstHanging, .onOwnThreads) @MainActor struct FetchedRowsTests {
    private struct Item: Record, Equatable {
        var id: Int
        var name: String
        var pinned = true
    }

    private let fixture: ObservationFixture
    private var store: Store { fixture.store }

    init() throws { fixture = try ObservationFixture() }

    private func insert(_ items: Item...) throws {
        try fixture.write { tx in try tx.insert(items) }
    }

    /// How often the properties that `read` reads change.
    private func changes(of read: @escaping @MainActor () -> Void) -> Counter {
        let counter = Counter()
        Self.count(read, counter)
        return counter
    }

    private static func count(_ read: @escaping @MainActor () -> Void, _ counter: Counter) {
        withObservationTracking(read) {
            counter.add()
            Task { @MainActor in count(read, counter) }
        }
    }

    @Test func `rows follow a query, and a view is told of it`() async throws {
        let items = FetchedRows(store, Item.where(\.pinned == true).order(by: \.name))
        #expect(items.rows.isEmpty && !items.isLoading && !items.isObserving)
        items.start()
        items.start()
        #expect(items.isLoading && items.isObserving)
        try await yieldWhile { items.isLoading }
        #expect(items.rows.isEmpty && store.core.observation.observerCount == 1)
        let told = changes { _ = items.rows }
        try insert(Item(id: 1, name: "b"))
        try await yieldWhile { items.rows.isEmpty }
        #expect(told.count == 1)
        try insert(Item(id: 2, name: "a"), Item(id: 3, name: "c", pinned: false))
        try await yieldWhile { items.rows.count < 2 }
        #expect(items.rows.map(\.id) == [2, 1] && items.error == nil)
    }

    @Test func `a result that is the same tells nobody`() async throws {
        let (fetches, compared) = (Counter(), Counter())
        let items = FetchedRows(
            store.observe { tx in
                fetches.add()
                return try tx.fetch(Item.where(\.pinned == true))
            }.removeDuplicates {
                compared.add()
                return $0 == $1
            })
        items.start()
        try await yieldWhile { items.isLoading }
        let told = changes { _ = (items.rows, items.isLoading, items.error == nil) }
        try insert(Item(id: 1, name: "a", pinned: false))
        try await yieldWhile { compared.count < 1 }
        try insert(Item(id: 2, name: "b"))
        try await yieldWhile { items.rows.isEmpty }
        #expect(told.count == 1 && fetches.count == 3)
        // Nor does the first result after a pause, which is the same.
        items.stop()
        #expect(items.rows.map(\.id) == [2] && !items.isObserving)
        let toldOfRows = changes { _ = items.rows }
        items.start()
        try await yieldWhile { items.isLoading }
        #expect(toldOfRows.count == 0 && fetches.count == 4)
    }

    @Test func `one record is a value`() async throws {
        let item = FetchedValue(store) { tx in try tx.find(Item.self, 1) }
        #expect(item.value == nil)
        item.start()
        try await yieldWhile { item.isLoading }
        #expect(item.value == .some(nil))
        try insert(Item(id: 1, name: "a"))
        try await yieldWhile { item.value == .some(nil) }
        #expect(item.value??.name == "a")
    }

    @Test func `nothing comes after stop, and start goes on`() async throws {
        let count = FetchedValue(store) { tx in try tx.count(Item.all) }
        count.start()
        try await yieldWhile { count.isLoading }
        count.stop()
        try insert(Item(id: 1, name: "a"))
        try await yieldWhile { store.core.observation.observerCount > 0 }
        #expect(count.value == 0 && !count.isLoading)
        count.start()
        #expect(count.isLoading)
        try await yieldWhile { count.isLoading }
        #expect(count.value == 1)
    }

    @Test func `an error ends the observation and leaves the rows, and start tries again`()
        async throws
    {
        let failure = Counter()
        let items = FetchedRows(store) { tx -> [Item] in
            let items = try tx.fetch(Item.all)
            if items.count == 2, failure.count == 0 { throw Undo() }
            return items
        }
        try insert(Item(id: 1, name: "a"))
        items.start()
        try await yieldWhile { items.isLoading }
        let told = changes { _ = items.error }
        try insert(Item(id: 2, name: "b"))
        try await yieldWhile { items.error == nil }
        #expect(items.error is Undo && !items.isObserving && !items.isLoading)
        #expect(items.rows.map(\.id) == [1] && told.count == 1)
        failure.add()
        items.start()
        #expect(items.error == nil)
        try await yieldWhile { items.isLoading }
        #expect(items.rows.count == 2)
        try await store.close()
        try await yieldWhile { items.error == nil }
        #expect((items.error as? StoreError)?.code == .closed && items.rows.count == 2)
    }

    @Test func `a model that is released ends its observation`() async throws {
        weak var released: FetchedRows<Item>?
        do {
            let items = FetchedRows(store, Item.all)
            released = items
            items.start()
            try await yieldWhile { items.isLoading }
            #expect(store.core.observation.observerCount == 1)
        }
        #expect(released == nil)
        try await yieldWhile { store.core.observation.observerCount > 0 }
    }
}
