import Foundation
import Testing

@testable import Coffer

@Suite struct SettingTests {
    private enum Theme: String, Codable, Sendable { case light, dark }
    private let fixture: BucketFixture
    private var store: Store { fixture.store }
    private let theme = Setting("theme", default: Theme.light)
    private let size = Setting("size", default: 12)
    private let tags = Setting("tags", default: ["a"])

    init() throws { fixture = try BucketFixture() }

    @Test func `settings of many types share a bucket, and have defaults`() throws {
        #expect(try store.get(theme) == .light)
        #expect(try store.get(size) == 12)
        try store.set(.dark, for: theme)
        try store.set(14, for: size)
        try store.update(tags) { $0.append("b") }
        #expect(try store.get(theme) == .dark && store.get(size) == 14)
        #expect(try store.get(tags) == ["a", "b"])
        #expect(try store.read { tx in try tx.isSet(theme) })
        #expect(try store.reset(theme))
        #expect(try !store.reset(theme))
        #expect(try store.get(theme) == .light)
        #expect(try !store.read { tx in try tx.isSet(theme) })
    }

    @Test func `a value of another type is an error, not the default`() throws {
        try store.set(14, for: size)
        let error = expect(.mismatch) { try store.get(Setting("size", default: "x")) }
        #expect(error?.table == "bucket:settings" && error?.column == "value")
        let others = Bucket<String, Int>("counts")
        try store.set(1, for: "a", in: others)
        expect(.mismatch) { try store.get(Setting("a", default: 0, in: "counts")) }
    }

    @Test func `a setting is observed`() async throws {
        let (store, size) = (store, size)
        let values = store.observe(size).makeAsyncIterator()
        let first = try await values.next()
        try await store.set(14, for: size)
        let second = try await values.next()
        try await store.reset(size)
        let third = try await values.next()
        #expect([first, second, third] == [12, 14, 12])
    }
}
