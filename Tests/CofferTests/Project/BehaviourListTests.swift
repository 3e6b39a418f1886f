import Foundation
import Testing

/// FMDB's own test cases, each of which is a test of Coffer's that begins with its number.
@Suite struct BehaviourListTests {
    private static let cases = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 25, 26,
        27, 28, 30, 31, 32, 33, 34, 37, 38, 39, 40, 41, 42, 43, 45, 46, 47, 48, 49, 50, 52, 53,
        54, 55, 56, 58, 59, 60, 61, 62, 63, 65, 66, 67, 68, 69, 70, 71, 72, 74, 75, 76, 78, 80,
        82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104,
        105, 107, 108, 109, 110, 112, 113, 114, 115, 116, 117, 118, 120, 121, 122, 123, 124, 125,
        127, 128, 130, 131, 133,
    ]

    private static let pitfalls = 1...37

    /// Pitfalls that no test can pin: the article ComingFromFMDB says why they cannot happen.
    private static let untestable: Set = [37]

    /// The numbers after a letter at the beginning of tests' names.
    private static func numbers(_ letter: Character) throws -> [Int] {
        let base = Repository.root.appending(path: "Tests/CofferTests")
        let files = try #require(FileManager.default.enumerator(atPath: base.path))
        return try files.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
            .flatMap { name in
                try String(contentsOf: base.appending(path: name), encoding: .utf8)
                    .components(separatedBy: "func `\(letter)").dropFirst()
                    .compactMap { Int($0.prefix(while: \.isNumber)) }
            }
    }

    @Test func `each case of FMDB's tests has one test`() throws {
        let found = try Self.numbers("F").sorted()
        #expect(found == Self.cases)
    }

    @Test func `each pitfall has a test, or a reason why it needs none`() throws {
        let found = Set(try Self.numbers("P"))
        for number in Self.pitfalls where !Self.untestable.contains(number) {
            #expect(found.contains(number), "P\(number) has no test")
        }
        let article = try Repository.text("Sources/Coffer/Coffer.docc/ComingFromFMDB.md")
        let named = article.split(separator: "\n").filter { $0.hasPrefix("| P") }
            .flatMap { $0.dropFirst(2).prefix { $0 != "|" }.split(separator: ",") }
            .compactMap { part in Int(part.filter(\.isNumber)) }
        #expect(Set(named).isSuperset(of: Self.pitfalls))
    }
}
