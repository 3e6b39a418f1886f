import Foundation
import Testing
import Workload

@testable import Coffer

/// One damaged page in a large bucket.
@Suite(.againstHanging, .onOwnThreads) struct BucketDamageTests {
    private static let count = 100_000

    @Test(arguments: journalModes)
    func `a damaged page takes only its own entries, and verify names it and the bucket`(
        mode: Configuration.JournalMode
    ) throws {
        let folder = try TemporaryFolder()
        let clock = HandClock()
        let users = Bucket<String, String>("users")
        func key(_ number: Int) -> String { "user \(number)" }
        let filling = try BucketFixture.open(folder, clock, mode)
        let profile = filling.core.pool.profile
        try filling.write { tx in
            for number in 0..<Self.count {
                try tx.set("name \(number)", for: key(number), in: users)
            }
        }
        try filling.close()
        let pageCount = try Damage.byteCount(folder.path()) / profile.pageByteCount
        let page = pageCount / 2
        try Damage.flip(folder.path(), at: page * profile.pageByteCount - 300)

        let store = try BucketFixture.open(folder, clock, mode)
        var damaged: [Int] = []
        for number in 0..<Self.count {
            do {
                let value = try store.get(key(number), in: users)
                #expect(value == "name \(number)")
            } catch let error as StoreError where error.code == .damaged {
                damaged.append(number)
            }
        }
        // A page has some dozens of entries of this size.
        #expect((5...500).contains(damaged.count))
        let report = try store.verify()
        #expect(report.damagedPages.map(\.number) == [page])
        #expect("\(report)".contains("bucket:users"))
        // The others can be changed, and the bucket is not read past the damage.
        let good = try #require((0..<Self.count).first { !damaged.contains($0) })
        try store.set("new", for: key(good), in: users)
        expect(.damaged) { try store.entries(in: users) }
    }
}
