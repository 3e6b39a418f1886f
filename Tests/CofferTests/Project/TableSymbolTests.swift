import Foundation
import Testing

/// The symbols of Coffer in the tables of a document are those that a file of calls names in its
/// comments, and the code below each comment has the symbol's words. So a table names nothing that
/// does not compile.
@Suite struct TableSymbolTests {
    struct Document: Sendable, CustomTestStringConvertible {
        let path: String
        /// The file of calls, next to this one.
        let calls: String
        /// The heads of the columns that name symbols.
        let heads: Set<String>
        let minimumCount: Int
        var testDescription: String { path }
    }

    static let documents = [
        Document(
            path: "README.md", calls: "ReadmeSymbols.swift", heads: ["Part", "There"],
            minimumCount: 40),
        Document(
            path: "Sources/Coffer/Coffer.docc/ComingFromFMDB.md", calls: "FMDBSymbols.swift",
            heads: ["Coffer", "What changed", "Why not here"], minimumCount: 90),
        Document(
            path: "Sources/Coffer/Coffer.docc/ComingFromGRDB.md", calls: "GRDBSymbols.swift",
            heads: ["Coffer", "What differs"], minimumCount: 45),
        Document(
            path: "Sources/Coffer/Coffer.docc/ComingFromSQLiteSwift.md",
            calls: "SQLiteSwiftSymbols.swift", heads: ["Coffer", "What differs"],
            minimumCount: 40),
        Document(
            path: "Sources/Coffer/Coffer.docc/ComingFromMMKV.md", calls: "MMKVSymbols.swift",
            heads: ["Coffer", "What differs"], minimumCount: 20),
        Document(
            path: "Sources/Coffer/Coffer.docc/ComingFromCoreData.md",
            calls: "CoreDataSymbols.swift", heads: ["Coffer", "What differs"],
            minimumCount: 30),
    ]

    @Test(arguments: documents)
    func `each symbol of a table is one that compiles, and the other way round`(
        document: Document
    ) throws {
        let named = Self.symbols(in: try Repository.text(document.path), document.heads)
        let calls = try Self.calls(in: document)
        #expect(named.count >= document.minimumCount)
        let compiled = Set(calls.map(\.symbol))
        for symbol in named.subtracting(compiled).sorted() {
            Issue.record("\(document.calls) compiles no `\(symbol)`")
        }
        for symbol in compiled.subtracting(named).sorted() {
            Issue.record("\(document.path) has no `\(symbol)`")
        }
    }

    @Test(arguments: documents)
    func `the code below a comment has the words of the symbol`(document: Document) throws {
        for call in try Self.calls(in: document) where !call.isForeign {
            // A call does not write `init`, and may name a type by an instance.
            let words = Self.words(in: call.symbol.split(separator: "/").last ?? "")
            let missing = words.subtracting(Self.words(in: call.code)).subtracting(["init"])
            #expect(missing.isEmpty, "`\(call.symbol)` is not what the code calls")
        }
    }

    /// The code spans of the columns with these heads, of each table that has such a column.
    private static func symbols(in text: String, _ heads: Set<String>) -> Set<String> {
        var symbols: Set<String> = []
        var columns: [Int]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                columns = nil
                continue
            }
            let cells = line.dropFirst().split(separator: "|", omittingEmptySubsequences: false)
            guard let known = columns else {
                columns = cells.indices.filter {
                    heads.contains(cells[$0].trimmingCharacters(in: .whitespaces))
                }
                continue
            }
            for column in known where cells.indices.contains(column) {
                symbols.formUnion(spans(of: cells[column]))
            }
        }
        return symbols
    }

    private struct Call {
        let symbol: String
        /// The lines from the comment to the next one.
        var code = ""
        /// Whether the comment marks it as a symbol of another library.
        let isForeign: Bool
    }

    private static func calls(in document: Document) throws -> [Call] {
        let text = try Repository.text("Tests/CofferTests/Project/\(document.calls)")
        var finished: [Call] = []
        var open: [Call] = []
        var isForeign = false
        for line in text.split(separator: "\n") {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.hasPrefix("// ") {
                let begins = open.contains { !$0.code.isEmpty } || open.isEmpty
                if begins { isForeign = line.hasPrefix("// No symbols of Coffer: ") }
                if begins {
                    finished += open
                    open = []
                }
                open += spans(of: line).map { Call(symbol: $0, isForeign: isForeign) }
            } else if !line.hasPrefix("///") {
                for index in open.indices { open[index].code += line + "\n" }
            }
        }
        return finished + open
    }

    /// Also of the double backticks that link to a symbol.
    private static func spans(of text: some StringProtocol) -> [String] {
        String(text).matches(of: /`+([^`]+)`+/).map { String($0.1) }
    }

    private static func words(in text: some StringProtocol) -> Set<String> {
        Set(String(text).matches(of: /[A-Za-z]\w*/).map { $0.0.lowercased() })
    }
}
