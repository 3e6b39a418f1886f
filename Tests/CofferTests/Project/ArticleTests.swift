import Foundation
import Testing

/// The articles show code that `ArticleCode` compiles and runs, and for servers the tests of
/// `CofferService`, which need other packages.
@Suite struct ArticleTests {
    static let articles: [String] = {
        let folder = Repository.root.appending(path: "Sources/Coffer/Coffer.docc").path
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".md") }.sorted()
    }()

    @Test func `there are articles with code`() throws {
        let count = try Self.articles.reduce(0) { try $0 + Self.blocks(of: $1).count }
        #expect(count >= 18)
    }

    /// Lines may be broken elsewhere, and `…` stands for anything.
    @Test(arguments: articles)
    func `the code of an article is compiled as it is shown`(article: String) throws {
        let files = [
            "Tests/CofferTests/Project/ArticleCode.swift",
            "Examples/NotesServer/Tests/CofferServiceTests/ServersArticleCode.swift",
        ]
        let code = try files.map { Self.dense(try Repository.text($0)) }.joined()
        for block in try Self.blocks(of: article) {
            var rest = code[...]
            for piece in Self.dense(block).split(separator: "…") {
                let place = rest.range(of: piece)
                guard let place else {
                    Issue.record("not compiled: \(block)")
                    break
                }
                rest = rest[place.upperBound...]
            }
        }
    }

    private static func blocks(of article: String) throws -> [String] {
        let text = try Repository.text("Sources/Coffer/Coffer.docc/\(article)")
        return text.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```").first
        }
    }

    private static func dense(_ text: String) -> String {
        text.filter { !$0.isWhitespace }
    }
}
