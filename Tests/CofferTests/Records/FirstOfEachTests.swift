import Foundation
import Testing
import Workload

@testable import Coffer

/// The first rows for each value of a property.
@Suite(.againstHanging, .onOwnThreads) struct FirstOfEachTests {
    private let fixture: RecordFixture
    private let articles: [Article]

    struct Author: Record {
        var id: Int
    }

    struct Article: Record, Equatable {
        static var references: [Reference<Self>] { [Reference(\.author, to: Author.self)] }
        var id: Int
        var author: Int?
        var title: String
        var rank: Int
        var created: Date
    }

    init() throws {
        fixture = try RecordFixture()
        var random = SeededGenerator(for: "articles")
        articles = (1...120).map { id in
            Article(
                id: id, author: id % 11 == 0 ? nil : Int.random(in: 1...6, using: &random),
                title: ["a", "A", "b", "é"].randomElement(using: &random) ?? "",
                rank: Int.random(in: 0...9, using: &random),
                created: Date(timeIntervalSinceReferenceDate: Double(id)))
        }
        let articles = articles
        try fixture.store.write { tx throws in
            try tx.insert((1...6).map { Author(id: $0) })
            try tx.insert(articles)
        }
    }

    private func expected(
        _ count: Int, where isChosen: (Article) -> Bool, per value: (Article) -> String
    ) -> [Int] {
        let sorted = articles.filter(isChosen).sorted {
            $0.rank != $1.rank ? $0.rank > $1.rank : $0.id < $1.id
        }
        var counts: [String: Int] = [:]
        return sorted.filter {
            counts[value($0), default: 0] += 1
            return counts[value($0), default: 0] <= count
        }.map(\.id)
    }

    @Test(.enabled(if: isEngine4))
    func `the first rows of each value are those that Swift finds`() throws {
        let sorted = Article.order(by: \.rank, .descending).order(by: \.id)
        try fixture.store.read { tx throws in
            for count in [0, 1, 3, 500] {
                let found = try tx.fetch(sorted.limit(count, per: \.author), \.id)
                #expect(
                    found
                        == expected(count, where: { _ in true }) { "\($0.author ?? 0)" })
            }
            let some = sorted.where(\.rank < 8).limit(2, per: \.author, \.title)
            let chosen = expected(2, where: { $0.rank < 8 }) {
                "\($0.author ?? 0) \($0.title.utf8)"
            }
            #expect(try tx.fetch(some, \.id) == chosen)
            // A condition after it does not bring in others, and a limit counts all rows.
            let after = some.where(\.title == "a").limit(3)
            let titles = Dictionary(uniqueKeysWithValues: articles.map { ($0.id, $0.title) })
            #expect(
                try tx.fetch(after, \.id) == Array(chosen.filter { titles[$0] == "a" }.prefix(3)))
        }
    }

    @Test(.enabled(if: isEngine4))
    func `each row includes the first of its rows`() throws {
        let newest = Article.order(by: \.created, .descending).limit(2, per: \.author)
        let found = try fixture.store.read { tx in
            try tx.fetch(Author.order(by: \.id).including(all: newest, by: \.author))
        }
        for (author, newest) in found {
            let own = articles.filter { $0.author == author.id }.map(\.id)
            #expect(newest.map(\.id) == Array(own.reversed().prefix(2)))
        }
        let deleted = try fixture.store.write { tx in try tx.delete(newest) }
        #expect(deleted == 14)
    }

    @Test func `what has no first rows is refused, and so is an engine without windows`() throws {
        struct Line: Record {
            static var key: [String] { [] }
            var text: String
        }
        let plain = Article.order(by: \.rank).limit(2, per: \.author)
        try fixture.store.read { tx throws in
            guard isEngine4 else {
                let error = expect(.unsupported) { try tx.fetch(plain) }
                #expect(error?.hint != nil)
                return
            }
            _ = expect(.misuse) { try tx.fetch(Article.all.limit(-1, per: \.author)) }
            _ = expect(.misuse) { try tx.fetch(Article.limit(3).limit(1, per: \.author)) }
            _ = expect(.misuse) { try tx.fetch(Article.all.limit(1, per: \.title.utf8.count)) }
            _ = expect(.misuse) { try tx.fetch(Line.all.limit(1, per: \.text)) }
        }
    }
}
