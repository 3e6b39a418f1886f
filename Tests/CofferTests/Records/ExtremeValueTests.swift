import Foundation
import Testing

@testable import Coffer

/// Numbers, dates, decimals and URLs at the ends of what a column holds.
@Suite(.againstHanging, .onOwnThreads) struct ExtremeValueTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    typealias Own = RecordPathsTests.Own
    typealias Stored = RecordPathsTests.Stored

    struct Reals<P: RecordPathsTests.Path>: Record {
        static var access: RecordAccess { P.access }
        static var table: String { "reals" }
        var id: Int
        var double: Double
        var float: Float
        var maybe: Double?
        var list: [Double]
    }

    @Test func `every finite real comes back bit for bit, but for -0`() throws {
        try checkReals(Reals<Own>.self)
        try checkReals(Reals<Stored>.self)
    }

    private func checkReals<P>(_ type: Reals<P>.Type) throws {
        let doubles: [Double] = [
            0, -0.0, 0.1, .pi, 1e22, 9_007_199_254_740_992, -9_223_372_036_854_775_808,
            9_223_372_036_854_775_808, .ulpOfOne, .leastNonzeroMagnitude, -.leastNormalMagnitude,
            .greatestFiniteMagnitude, 0.1.nextUp, -1e-300, .infinity, -.infinity,
        ]
        let all = doubles.enumerated().map { id, double in
            Reals<P>(
                id: id, double: double, float: Float(double), maybe: double,
                list: double.isFinite ? [double] : [])
        }
        try fixture.store.write { tx throws in
            try tx.upsert(all)
            for found in [try tx.fetch(type.all), try tx.fetch(type.order(by: \.id))] {
                for (one, expected) in zip(found, all) {
                    // Adding 0 makes 0 of -0 and changes no other number.
                    #expect(one.double.bitPattern == (expected.double + 0).bitPattern)
                    #expect(one.maybe?.bitPattern == (expected.double + 0).bitPattern)
                    #expect(one.float.bitPattern == (expected.float + 0).bitPattern)
                    #expect(one.list == expected.list)
                }
            }
            for one in all where one.double != 0 {
                #expect(try tx.fetch(type.where(\.double == one.double)).map(\.id) == [one.id])
            }
            #expect(try tx.count(type.where(\.double == -0.0)) == 2)
        }
    }

    struct Big<P: RecordPathsTests.Path>: Record, Equatable {
        static var access: RecordAccess { P.access }
        static var table: String { "big" }
        var id: Int
        var whole: UInt64
        var word: UInt?
        var wrapped: Count
        var list: [UInt64]

        init(_ id: Int, whole: UInt64 = 0, word: UInt? = nil, wrapped: UInt64 = 0) {
            (self.id, self.whole, self.word) = (id, whole, word)
            self.wrapped = Count(number: wrapped)
            list = [.max, whole]
        }
    }

    struct Count: Codable, Hashable {
        var number: UInt64
        init(number: UInt64) { self.number = number }
        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(UInt64.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    @Test func `an unsigned integer fits up to that of Int64, and not one more`() throws {
        try checkBig(Big<Own>.self)
        try checkBig(Big<Stored>.self)
    }

    private func checkBig<P>(_ type: Big<P>.Type) throws {
        let top = UInt64(Int64.max)
        try fixture.store.write { tx throws in
            let fitting = Big<P>(1, whole: top, word: UInt(top), wrapped: top)
            try tx.upsert(fitting)
            #expect(try tx.fetch(type.all) == [fitting])
            for (bad, column) in [
                (Big<P>(2, whole: top + 1), "whole"), (Big<P>(2, word: UInt(top) + 1), "word"),
                (Big<P>(2, wrapped: top + 1), "wrapped"), (Big<P>(2, whole: .max), "whole"),
            ] {
                let error = expect(.mismatch) { try tx.insert(bad) }
                #expect(error?.column == column)
            }
            let path = \Big<P>.whole
            for condition in [path == top + 1, path < .max, [0, top + 1].contains(path)] {
                let error = expect(.mismatch) { try tx.count(type.where(condition)) }
                #expect(error?.column == "whole")
            }
            _ = expect(.mismatch) { try tx.update(type.all.set(\.whole, to: .max)) }
            _ = expect(.mismatch) { try tx.find(type, UInt64.max) }
            #expect(try tx.fetch(type.where(\.whole >= top)) == [fitting])
        }
    }

    struct Moment<P: RecordPathsTests.Path>: Record {
        static var access: RecordAccess { P.access }
        static var table: String { "moment" }
        var id: Int
        var date: Date
        var maybe: Date?
        var list: [Date]
    }

    @Test func `dates of any time keep their microseconds, and are found by themselves`() throws {
        try checkMoments(Moment<Own>.self)
        try checkMoments(Moment<Stored>.self)
    }

    private func checkMoments<P>(_ type: Moment<P>.Type) throws {
        let dates: [Date] =
            [0, -0.000_001, 0.000_000_1, 1_700_000_000.123_456_7, -11_676_096_000.5, 8e9 + 0.25]
            .map { Date(timeIntervalSince1970: $0) }
            + [.distantPast, .distantFuture, Date(timeIntervalSinceReferenceDate: 0.000_000_4)]
        let all = dates.enumerated().map { Moment<P>(id: $0, date: $1, maybe: $1, list: [$1]) }
        try fixture.store.write { tx throws in
            try tx.upsert(all)
            for found in [try tx.fetch(type.all), try tx.fetch(type.order(by: \.id))] {
                for (one, expected) in zip(found, all) {
                    #expect(abs(one.date.timeIntervalSince(expected.date)) < 0.000_001)
                    #expect(one.maybe == one.date && one.list == expected.list)
                }
            }
            // What was read and is written again does not drift.
            let before = try tx.rows("SELECT date FROM moment ORDER BY id").map(\.values)
            try tx.update(try tx.fetch(type.all))
            #expect(try tx.rows("SELECT date FROM moment ORDER BY id").map(\.values) == before)
            for one in all {
                #expect(try tx.fetch(type.where(\.date == one.date)).map(\.id) == [one.id])
            }
            for wrong in [Date(timeIntervalSince1970: .nan), Date(timeIntervalSince1970: -.nan)] {
                let bad = Moment<P>(id: 99, date: wrong, maybe: nil, list: [])
                #expect(expect(.mismatch) { try tx.insert(bad) }?.column == "date")
                let worse = Moment<P>(id: 99, date: .distantPast, maybe: wrong, list: [])
                #expect(expect(.mismatch) { try tx.insert(worse) }?.column == "maybe")
            }
        }
    }

    struct Price: Record, Equatable {
        var id: Int
        var amount: Decimal
    }

    @Test func `equal decimals are one text, and what is no number is refused`() throws {
        let same = [
            Decimal(sign: .plus, exponent: -2, significand: 150),
            Decimal(sign: .plus, exponent: -1, significand: 15), Decimal(1.5),
        ]
        let ends = [
            Decimal.greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, 0,
        ]
        let all = (same + ends).enumerated().map { Price(id: $0, amount: $1) }
        try fixture.store.write { tx throws in
            try tx.insert(all)
            #expect(try tx.fetch(Price.order(by: \.id)) == all)
            #expect(try tx.count(Price.where(\.amount == same[0])) == 3)
            for price in all {
                #expect(try tx.fetch(Price.where(\.amount == price.amount)).contains(price))
            }
            let error = expect(.mismatch) { try tx.insert(Price(id: 99, amount: .nan)) }
            #expect(error?.column == "amount")
        }
    }

    struct Link: Record, Equatable {
        var id: Int
        var url: URL
        var maybe: URL?
    }

    @Test func `a relative URL becomes the absolute one`() throws {
        let base = try #require(URL(string: "https://example.com/a/"))
        let relative = try #require(URL(string: "b?c=ä", relativeTo: base))
        let found = try #require(
            try fixture.roundTrip(Link(id: 1, url: relative, maybe: base)).first)
        #expect(found.url.absoluteString == relative.absoluteString && found.url.baseURL == nil)
        #expect(found.url == relative.absoluteURL && found.maybe == base)
        let count = try fixture.store.read { tx in try tx.count(Link.where(\.url == relative)) }
        #expect(count == 1)
    }

    struct Huge: Record {
        var id: Int
        var number: Int128
    }

    @Test func `an integer of 128 bits, which no coder of Coffer's knows, is an error`() throws {
        try fixture.store.write { tx throws in
            _ = expect(.misuse) { try tx.insert(Huge(id: 1, number: 1)) }
        }
    }
}
