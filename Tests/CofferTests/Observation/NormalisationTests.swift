import Foundation
import Testing

@testable import Coffer

/// Names and keys that differ in Unicode normalisation: one to Swift's `String`, two to SQLite.
@Suite(.againstHanging, .onOwnThreads) struct NormalisationTests {
    private static let composed = "x\u{e9}"
    private static let decomposed = "xe\u{301}"

    @Test func `values are equal if their bytes are`() {
        #expect(Value.text(Self.composed) != .text(Self.decomposed))
        #expect(Set([Value.text(Self.composed), .text(Self.decomposed)]).count == 2)
        #expect(Value.text(Self.composed) == .text(Self.composed))
        #expect(Value.null != .integer(0))
        #expect(Value.integer(1) != .real(1))
    }

    @Test func `a key that takes the place of its other form is two changes`() async throws {
        let fixture = try ObservationFixture()
        let bucket = Bucket<String, Int>("b")
        try await fixture.store.set(1, for: Self.decomposed, in: bucket)
        let token = try await fixture.store.write { tx in
            try tx.keepHistory(of: bucket.table)
            return try tx.changeToken()
        }
        let loop = fixture.store.changes(in: bucket.table).makeAsyncIterator()
        try await fixture.store.write { tx in
            try tx.set(1, for: Self.composed, in: bucket)
            try tx.remove(Self.decomposed, in: bucket)
        }
        let expected = [
            ChangedRow(table: bucket.table, key: [.text(Self.composed)], kind: .insert),
            ChangedRow(table: bucket.table, key: [.text(Self.decomposed)], kind: .delete),
        ]
        #expect(try await fixture.store.changes(since: token).changes == expected)
        guard case .commit(let rows) = try await loop.next() else {
            Issue.record("no commit")
            return
        }
        #expect(rows == expected)
    }

    @Test func `two buckets with one name in two forms are followed apart`() async throws {
        let fixture = try ObservationFixture()
        let buckets = [Self.composed, Self.decomposed].map { Bucket<String, Int>($0) }
        let token = try await fixture.store.write { tx in
            for bucket in buckets {
                try tx.set(0, for: "k", in: bucket)
                try tx.keepHistory(of: bucket.table)
            }
            return try tx.changeToken()
        }
        let loops = buckets.map { fixture.store.changes(in: $0.table).makeAsyncIterator() }
        try await fixture.store.write { tx in
            try tx.remove("k", in: buckets[0])
            try tx.set(1, for: "k", in: buckets[1])
        }
        let expected = [
            ChangedRow(table: buckets[0].table, key: [.text("k")], kind: .delete),
            ChangedRow(table: buckets[1].table, key: [.text("k")], kind: .update),
        ]
        #expect(try await fixture.store.changes(since: token).changes == expected)
        for (loop, change) in zip(loops, expected) {
            guard case .commit(let rows) = try await loop.next() else {
                Issue.record("no commit")
                continue
            }
            #expect(rows == [change])
        }
    }

    @Test func `an absent key does not take away its other form`() throws {
        let fixture = try ObservationFixture()
        let bucket = Bucket<String, Int>("b")
        try fixture.store.set(1, for: Self.composed, in: bucket)
        let found = try fixture.store.get([Self.composed, Self.decomposed], in: bucket)
        #expect(found.values.map(\.self) == [1])
    }
}
