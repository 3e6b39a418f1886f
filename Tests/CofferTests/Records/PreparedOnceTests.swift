import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// A verb compiles its statement once; after that it is in the cache.
@Suite struct PreparedOnceTests {
    struct Item: Record {
        static var indexes: [Index<Self>] { [Index(\.code, isUnique: true)] }
        var id: Int
        var code: String
        var count: Int
        var rank: Double
    }

    struct Fast: Record {
        static let access = RecordAccess.storedProperties
        var id: Int
        var code: String
        var count: Int
        var rank: Double
    }

    struct Code: Decodable { let code: String }

    private typealias Verb = (
        name: String, run: @Sendable (inout WriteTransaction, Int) throws -> Void
    )

    private static let writing: [Verb] = [
        ("insert", { tx, n in try tx.insert(item(n)) }),
        ("insert many", { tx, n in try tx.insert([item(n + 10), item(n + 11)]) }),
        ("upsert", { tx, n in try tx.upsert(item(n)) }),
        (
            "upsert conflicting",
            { tx, n in try tx.upsert(item(n), conflictingOn: \.code) }
        ),
        ("update", { tx, n in try tx.update(item(n)) }),
        ("update many", { tx, n in try tx.update([item(n), item(n + 10)]) }),
        ("update only", { tx, n in try tx.update(item(n), only: \.count, \.rank) }),
        (
            "update where",
            { tx, n in try tx.update(Item.where(\.id == n).set(\.count, to: n)) }
        ),
        ("delete", { tx, n in try tx.delete(item(n)) }),
        ("delete key", { tx, n in try tx.delete(Item.self, key: n + 10) }),
        ("delete keys", { tx, n in try tx.delete(Item.self, keys: [n + 11]) }),
        ("delete where", { tx, n in try tx.delete(Item.where(\.code == "\(n)")) }),
    ]

    private static let reading: [Verb] = [
        ("find", { tx, n in _ = try tx.find(Item.self, n) }),
        ("find fast", { tx, n in _ = try tx.find(Fast.self, n) }),
        ("find keys", { tx, n in _ = try tx.find(Item.self, keys: [1, n, 3]) }),
        ("find many keys", { tx, n in _ = try tx.find(Item.self, keys: [1, n, 3, 5, 2, 6]) }),
        ("find many keys fast", { tx, n in _ = try tx.find(Fast.self, keys: n...(n + 7)) }),
        ("first", { tx, n in _ = try tx.first(Item.where(\.id > n).order(by: \.code)) }),
        ("fetch", { tx, n in _ = try tx.fetch(Item.where(\.id > n && \.rank < 7).limit(3)) }),
        ("fetch all", { tx, _ in _ = try tx.fetch(Item.all) }),
        ("fetch all fast", { tx, _ in _ = try tx.fetch(Fast.all) }),
        ("fetch list", { tx, n in _ = try tx.fetch(Item.where([1, n].contains(\.id))) }),
        (
            "fetch long list",
            { tx, n in _ = try tx.fetch(Item.where(Array(0..<(500 + n)).contains(\.id))) }
        ),
        (
            "fetch SQL",
            { tx, n in _ = try tx.fetch(Item.self, sql: "SELECT * FROM item WHERE id = \(n)") }
        ),
        ("fetch as", { tx, n in _ = try tx.fetch(Item.where(\.id > n), as: Code.self) }),
        ("forEach", { tx, n in try tx.forEach(Item.where(\.id > n)) { _ in } }),
        (
            "page",
            { tx, n in _ = try tx.fetch(Item.order(by: \.code).after(item(n)).limit(2)) }
        ),
        ("count", { tx, n in _ = try tx.count(Item.where(\.id > n)) }),
        ("exists", { tx, n in _ = try tx.exists(Item.where(\.id > n)) }),
        ("min", { tx, n in _ = try tx.min(\.code, Item.where(\.id > n)) }),
        ("max", { tx, n in _ = try tx.max(\.code, Item.where(\.id > n)) }),
        ("sum", { tx, n in _ = try tx.sum(\.count, Item.where(\.id > n)) }),
        ("average", { tx, n in _ = try tx.average(\.rank, Item.where(\.id > n)) }),
        ("distinct", { tx, n in _ = try tx.distinct(\.code, Item.where(\.id > n)) }),
        ("counts", { tx, n in _ = try tx.counts(by: \.code, Item.where(\.id > n)) }),
        (
            "groups",
            { tx, n in
                let groups = Item.where(\.id > n).group(by: \.code).having(.count > n)
                _ = try tx.fetch(groups, .count, .average(\.rank), .sum(\.count))
            }
        ),
        ("aggregate", { tx, n in _ = try tx.aggregate(Item.where(\.id > n), .max(\.code)) }),
    ]

    private static func item(_ number: Int) -> Item {
        Item(id: number, code: "\(number)", count: number, rank: 0.5)
    }

    @Test func `the second call of a verb compiles nothing, whatever its values`() throws {
        let fixture = try RecordFixture()
        let callCount = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        callCount.initialize(to: 0)
        defer { callCount.deallocate() }
        try fixture.store.write { tx in
            try tx.create(Item.self)
            try tx.create(Fast.self)
            try tx.insert((1...5).map(Self.item))
            let handle = try tx.connection().current()
            // "The authorizer callback is invoked as SQL statements are being compiled":
            // https://www.sqlite.org/c3ref/set_authorizer.html
            sqlite3_set_authorizer(
                handle.db,
                { count, _, _, _, _, _ in
                    count?.assumingMemoryBound(to: Int.self).pointee += 1
                    return SQLITE_OK
                }, callCount)
            defer { handle.authorizer.install(on: handle.db) }
            for verb in Self.writing + Self.reading {
                try verb.run(&tx, 100)
                let count = callCount.pointee
                try verb.run(&tx, 200)
                #expect(callCount.pointee == count, "\(verb.name) compiles each time")
            }
            #expect(callCount.pointee > 100, "the first calls are seen")
        }
    }
}
