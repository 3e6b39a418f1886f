import Foundation
import Testing

@testable import Coffer

/// Shows by damage which pages the reads of a `Lazy` property touch.
@Suite struct LazyDamageTests {
    /// The table of `BlobFixture`.
    private struct Item: Record, Equatable {
        static let table = "t"
        var id: Int
        var flag: Int
        var data: Lazy<Data>?
    }

    private struct TextItem: Record {
        static let table = "t"
        var id: Int
        var data: Lazy<String>
    }

    @Test(arguments: BlobFixture.DamagedPart.allCases, journalModes)
    func `a list reads no page of the values, and loading one meets its damage`(
        part: BlobFixture.DamagedPart, mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = try fixture.insertDamaged(part)
        let store = try fixture.store()
        // Reading a damaged page would be an error.
        let found = try store.read { tx throws in
            let items = try tx.fetch(Item.all)
            let sizes = items.map(\.data?.byteCount)
            #expect(try tx.fetch(Item.where(\.flag > 3)).map(\.data?.byteCount) == sizes)
            #expect(try tx.find(Item.self, 1)?.data?.byteCount == sizes.first)
            #expect(try tx.fetch(TextItem.all).count == 1)
            return items
        }
        let item = try #require(found.first)
        #expect(item.flag == 7 && item.data?.byteCount == data.count)
        expect(.damaged) { try store.read { tx in try tx.load(\.data, of: item) } }
    }

    @Test(arguments: journalModes)
    func `an update leaves a value of many pages as it is`(
        mode: Configuration.JournalMode
    ) throws {
        let fixture = try BlobFixture(mode)
        let data = BlobFixture.bytes(100_000)
        try fixture.insert(data)
        let store = try fixture.store()
        try store.write { tx throws in
            var item = try #require(try tx.find(Item.self, 1))
            item.flag = 8
            try tx.update(item)
        }
        try store.read { tx throws in
            let item = try #require(try tx.find(Item.self, 1))
            #expect(item.flag == 8)
            #expect(try tx.load(\.data, of: item) == data)
        }
    }
}
