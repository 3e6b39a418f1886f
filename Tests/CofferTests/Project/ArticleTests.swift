import Foundation
import Testing

/// The articles show code that `ArticleCode` and its neighbours compile and run. The tests of
/// `CofferService`, which need other packages, do so for servers, and an example for the cookbook.
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
        let code = try Self.files(of: article).map { Self.dense(try Repository.text($0)) }.joined()
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

    /// The files that compile the code of an article.
    private static func files(of article: String) throws -> [String] {
        guard article == "Cookbook.md" else {
            return [
                "Tests/CofferTests/Project/ArticleCode.swift",
                "Tests/CofferTests/Project/MovingArticleCode.swift",
                "Tests/CofferTests/Project/TestingArticleCode.swift",
                "Examples/NotesServer/Tests/CofferServiceTests/ServersArticleCode.swift",
            ]
        }
        let folder = "Examples/Cookbook"
        return try FileManager.default
            .contentsOfDirectory(atPath: Repository.root.appending(path: folder).path)
            .sorted().map { "\(folder)/\($0)" }
    }

    /// Each recipe of the example is in the article, under its task and its name.
    @Test func `the cookbook has all recipes`() throws {
        let article = try Repository.text("Sources/Coffer/Coffer.docc/Cookbook.md")
        let files = try Self.files(of: "Cookbook.md").map { try Repository.text($0) }.joined()
        let recipe = #/Recipe\(\s*"(?<name>[a-z-]+)",\s*"(?<task>[^"]+)"/#
        let headings = files.matches(of: recipe).map { found in
            "### \(found.task.prefix(1).uppercased())\(found.task.dropFirst()) — `\(found.name)`"
        }
        let shown = article.split(separator: "\n").filter { $0.hasPrefix("### ") }.map(String.init)
        #expect(shown.sorted() == headings.sorted())
        #expect(shown.count >= 30)
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
