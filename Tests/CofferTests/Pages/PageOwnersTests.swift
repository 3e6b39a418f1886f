import Testing
import Workload

@testable import Coffer

@Suite(.againstHanging, .onOwnThreads) struct PageOwnersTests {
    private let vectors: OwnerVectors
    private let pages: [[UInt8]]

    init() throws {
        vectors = try #require(OwnerVectors.shared)
        pages = try vectors.plaintext()
    }

    /// The walk's description of `numbers` when `damaged` cannot be read.
    private func contents(
        of numbers: Set<Int>, damaged: Set<Int>, in pages: [[UInt8]]? = nil
    ) throws -> [Int: String] {
        let pages = pages ?? self.pages
        let contents = try PageOwners.contents(of: numbers, pageCount: pages.count) { number in
            damaged.contains(number) || !pages.indices.contains(number - 1)
                ? nil : pages[number - 1]
        }
        #expect(Set(contents.keys) == numbers)
        return contents.mapValues(\.description)
    }

    private var all: Set<Int> { Set(1...pages.count) }

    @Test func `the vectors have every kind of page`() {
        let contents = Set(vectors.pages.map(\.content))
        for needed in [
            "a leaf of table note", "overflow of table note", "overflow of table tag",
            "a leaf of index note_title of table note", "an interior page of table tag",
            "overflow of index note_title of table note", "the schema", "free",
            "a leaf of index sqlite_autoindex_person_1 of table person",
        ] {
            #expect(contents.contains(needed), "\(needed)")
        }
    }

    @Test func `readable pages are named as SQLite names them`() throws {
        let contents = try contents(of: all, damaged: [])
        for (index, page) in vectors.pages.enumerated() {
            #expect(contents[index + 1] == page.content, "page \(index + 1)")
        }
    }

    @Test func `each damaged page is named as SQLite names it`() throws {
        for number in all {
            let contents = try contents(of: [number], damaged: [number])
            #expect(
                contents[number] == vectors.pages[number - 1].contentIfDamaged, "page \(number)")
        }
    }

    @Test func `only the schema is known without page 1`() throws {
        let contents = try contents(of: all, damaged: [1])
        #expect(contents[1] == "the schema")
        #expect(contents.filter { $0.key != 1 }.allSatisfy { $0.value == "unknown" })
    }

    @Test(arguments: [0.02, 0.1, 0.3, 0.6, 0.95])
    func `many damaged pages are named correctly or not at all`(part: Double) throws {
        var random = SeededGenerator(for: #function)
        for _ in 0..<(isLongRun ? 2000 : 60) {
            // Sorted, because a set has another order in each process.
            let damaged = Set(
                all.sorted().filter { _ in
                    Double.random(in: 0..<1, using: &random) < part
                })
            for (number, content) in try contents(of: damaged, damaged: damaged) {
                let page = vectors.pages[number - 1]
                let isRight = [page.content, page.contentIfDamaged, "unknown"].contains(content)
                // A page that may be a leaf or an interior page, which cannot be distinguished.
                let isVague = content == "a page of \(page.owner)"
                #expect(isRight || isVague, "page \(number) of \(damaged.sorted()): \(content)")
            }
        }
    }

    @Test func `pages below a damaged interior page are unknown and its siblings are named`()
        throws
    {
        let interior = try #require(
            vectors.pages.firstIndex {
                $0.content == "an interior page of table tag" && !$0.isRoot
            })
        let contents = try contents(of: all, damaged: [interior + 1])
        #expect(contents[interior + 1] == "an interior page of table tag")
        let leaves = vectors.pages.indices.filter {
            vectors.pages[$0].content == "a leaf of table tag"
        }
        let known = leaves.filter { contents[$0 + 1] == "a leaf of table tag" }
        #expect(!known.isEmpty && known.count < leaves.count)
        #expect(
            leaves.filter { !known.contains($0) }.allSatisfy { contents[$0 + 1] == "unknown" })
    }

    // MARK: Hostile pages

    @Test func `pages of noise never trap and every walk ends`() throws {
        let kinds: [UInt8] = [2, 5, 10, 13]
        let numbers: [UInt8] = [0, 0, 1, 255]
        var random = SeededGenerator(for: #function)
        for _ in 0..<(isLongRun ? 1500 : 120) {
            var pages = pages
            for number in all.sorted() where Bool.random(using: &random) {
                if Bool.random(using: &random) {
                    // Changes a few bytes, most of them where pointers and counts are.
                    for _ in 0..<Int.random(in: 1...8, using: &random) {
                        let end = Bool.random(using: &random) ? 40 : pages[number - 1].count
                        let offset = Int.random(in: 0..<end, using: &random)
                        pages[number - 1][offset] = .random(in: 0...255, using: &random)
                    }
                } else {
                    // All noise, but with the numbers of existing pages.
                    pages[number - 1] = (0..<pages[number - 1].count).map { index in
                        index % 4 == 3
                            ? .random(in: 0...120, using: &random)
                            : numbers.randomElement(using: &random) ?? 0
                    }
                    let kind = kinds.randomElement(using: &random) ?? 2
                    pages[number - 1][number == 1 ? 100 : 0] = kind
                }
            }
            let damaged = Set(
                all.sorted().filter { _ in
                    Int.random(in: 0..<20, using: &random) == 0
                })
            _ = try contents(of: damaged.union([1, 2, 4_294_967_295]), damaged: damaged, in: pages)
        }
    }

    @Test func `every byte of a page may be the highest value or zero`() throws {
        for number in [1, 2, 3, 4] {
            for offset in stride(from: 0, to: pages[0].count, by: isLongRun ? 1 : 11) {
                for byte: UInt8 in [0, 127, 128, 255] {
                    var pages = pages
                    pages[number - 1][offset] = byte
                    _ = try contents(of: [4, pages.count, 1000], damaged: [4], in: pages)
                }
            }
        }
    }

    @Test func `short and empty pages never trap`() throws {
        for count in [0, 1, 3, 4, 8, 99, 100, 108, 479, 480, 900] {
            for number in [1, 2, 3, 5, pages.count] {
                var pages = pages
                pages[number - 1] = Array(pages[number - 1].prefix(count))
                _ = try contents(of: all, damaged: [7], in: pages)
            }
        }
    }

    @Test func `cycles end`() throws {
        let usable = 976
        func page(_ numbers: [Int: Int]) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: usable)
            for (offset, number) in numbers {
                for index in 0..<4 {
                    bytes[offset + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index))
                }
            }
            return bytes
        }
        // The schema's root is its own child, and the free list's trunks follow each other.
        var first = page([32: 2, 108: 1])
        first[100] = 5
        var child = page([8: 4, 12: 500 << 16])
        child[0] = 5
        child[4] = 1
        let trunks = [page([0: 3, 4: 2, 8: 9, 12: 10]), page([0: 2, 4: 1 << 31, 8: 11])]
        let pages = [first] + trunks + [child]
        let contents = try contents(of: [1, 2, 3, 4, 9, 10, 11, 12], damaged: [], in: pages)
        #expect(
            contents == [
                1: "the schema", 2: "free", 3: "free", 4: "unknown", 9: "free", 10: "free",
                11: "free", 12: "unknown",
            ])
        var below = first
        below[111] = 4
        let lower = try self.contents(of: [4], damaged: [], in: [below] + trunks + [child])
        #expect(lower == [4: "the schema"])
    }

    @Test func `a file with auto_vacuum has pointer maps where its page size puts them`() throws {
        var pages = pages
        pages[0][55] = 1
        // A page has 976 usable bytes: an entry of 5 bytes for each of the 195 pages that follow.
        let contents = try contents(of: [2, 3, 198, 199, 394], damaged: [2], in: pages)
        #expect(contents.filter { $0.value == "a pointer map" }.keys.sorted() == [2, 198, 394])
    }
}
