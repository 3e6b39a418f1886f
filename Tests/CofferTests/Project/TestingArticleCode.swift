import Coffer
import Foundation
import Synchronization
import Testing

/// The code of the article about testing a program.
@Suite(.againstHanging, .onOwnThreads) struct TestingArticleCode {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    struct Note: Record {
        var id: Int
        var title: String
        var pinned: Bool
    }

    private let migrations = [
        Migration("notes") { tx in
            struct Note: Record {
                var id: Int
                var title: String
            }
            try tx.create(Note.self)
        },
        Migration("pins") { tx in
            struct Note: Record {
                static var defaults: [Default<Self>] { [Default(\.pinned, false)] }
                var id: Int
                var title: String
                var pinned: Bool
            }
            try tx.create(Note.self)
        },
    ]

    @Test func `Testing: stores`() throws {
        do {
            let store = try Store(.memory)
            try store.migrate(migrations)
            try store.write { tx in try tx.insert(Note(id: 1, title: "a", pinned: true)) }
        }
        let path = folder.path()
        let key = StoreKey.random()
        let store = try Store(path: path, key: key)
        try store.close()
    }

    final class HandClock: Sendable {
        private let date = Mutex(Date(timeIntervalSince1970: 1_800_000_000))
        var now: Date { date.withLock { $0 } }
        func advance(by seconds: Double) { date.withLock { $0 += seconds } }
    }

    @Test func `Testing: time`() throws {
        let clock = HandClock()
        let sessions = Bucket<String, String>("sessions", lifetime: .seconds(1800))
        var configuration = Configuration()
        configuration.currentDate = { clock.now }
        configuration.expirySweepInterval = nil
        let store = try Store(.memory, configuration: configuration)
        try store.set("ada", for: "token", in: sessions)
        #expect(try store.get("token", in: sessions) == "ada")
        clock.advance(by: 1801)
        #expect(try store.get("token", in: sessions) == nil)
    }

    @Test func `Testing: migrations`() throws {
        let key = StoreKey.random()
        let fileOfVersion1 = folder.path("version1.db")
        let old = try Store(path: fileOfVersion1, key: key)
        try old.migrate([migrations[0]])
        try old.close()
        try Migration.rehearse(migrations, for: Note.self)
        let copy = folder.path("copy.db")
        try FileManager.default.copyItem(atPath: fileOfVersion1, toPath: copy)
        let store = try Store(path: copy, key: key, mode: .mustExist)
        #expect(try store.migrate(migrations) == 1)
        #expect(try store.verify().isGood)
        #expect(try store.read { tx in try tx.schemaDifferences(of: Note.self) }.isEmpty)
    }

    @Test func `Testing: what goes wrong`() throws {
        let path = folder.path()
        let key = StoreKey.random()
        let store = try Store(path: path, key: key)
        try store.migrate(migrations)
        try store.close()
        let file = try FileHandle(forUpdating: URL(filePath: path))
        try file.seek(toOffset: 4096 + 100)
        try file.write(contentsOf: Data([0xAA, 0x55, 0xAA, 0x55]))
        try file.close()
        let damaged = try Store(path: path, key: key)
        #expect(try !damaged.verify().isGood)
    }
}
