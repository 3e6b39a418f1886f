import Foundation
import Testing

/// What the compiler must refuse: each file of `Tests/MustNotCompile` begins with the error that it
/// must get.
@Suite(.againstHanging, .onOwnThreads) struct CompilerTests {
    private static let files: [String] = {
        let folder = Repository.root.appending(path: "Tests/MustNotCompile").path
        return (try? FileManager.default.contentsOfDirectory(atPath: folder))?.sorted() ?? []
    }()

    @Test func `there is something that must not compile`() {
        #expect(Self.files.count >= 9)
    }

    @Test(arguments: files)
    func `misuse that types can stop does not compile`(file: String) throws {
        let source = Repository.root.appending(path: "Tests/MustNotCompile").appending(path: file)
        let text = try String(contentsOf: source, encoding: .utf8)
        let expected = try #require(text.split(separator: "\n").first).dropFirst("// ".count)
        let output = try Self.compile(source)
        #expect(output.contains(expected), "the compiler said: \(output)")
    }

    @Test func `a query of five terms is checked in less than a second`() throws {
        let source = Repository.root.appending(path: "Tests/MustCompile/FiveTermQuery.swift")
        // Seconds of processor time after which the compiler gives up on an expression.
        let limit = ["-Xfrontend", "-solver-expression-time-threshold=1"]
        #expect(try Self.compile(source, limit) == "")
    }

    /// Swift warns of an optional in an interpolation that has no overload for it. Its fix-it makes
    /// the optional a text, "nil", which the store would keep.
    @Test func `every interpolation of SQL compiles without a warning`() throws {
        let source = Repository.root.appending(path: "Tests/MustCompile/Interpolations.swift")
        #expect(try Self.compile(source, ["-warnings-as-errors"]) == "")
    }

    @Test func `asking for a key compiles without a warning in each kind of function`() throws {
        let source = Repository.root.appending(path: "Tests/MustCompile/KeyPrompts.swift")
        #expect(try Self.compile(source, ["-warnings-as-errors"]) == "")
    }

    /// Compiles up to the check of ownership.
    private static func compile(_ source: URL, _ options: [String] = []) throws -> String {
        try BuiltModules.compile(source, ["-emit-sil", "-o", "/dev/null"] + options)
    }
}
