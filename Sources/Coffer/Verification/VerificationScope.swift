/// How much of a store `verify` checks.
public struct VerificationScope: Sendable, Hashable {
    /// Every page of the main file, and the structure.
    public static let everything = VerificationScope(kind: .everything)

    /// A random sample of up to `maximumPageCount` pages, always including page 1, without the
    /// structure: for a large store that is checked often. Each run draws a new sample.
    ///
    /// - Parameter maximumPageCount: Pages to check, at least 1; `verify` throws `.misuse` for
    ///   less. All pages of a smaller store are checked.
    public static func sample(maximumPageCount: Int) -> VerificationScope {
        VerificationScope(kind: .pages(maximumPageCount))
    }

    /// A random sample of this fraction of all pages, always including page 1, without the
    /// structure: for a large store that is checked often. Each run draws a new sample.
    ///
    /// - Parameter fraction: The fraction of the pages to check, above 0 and up to 1; `verify`
    ///   throws `.misuse` otherwise. Rounded up to whole pages.
    public static func sample(fraction: Double) -> VerificationScope {
        VerificationScope(kind: .fraction(fraction))
    }

    private enum Kind: Hashable {
        case everything
        case pages(Int)
        case fraction(Double)
    }

    private let kind: Kind

    private init(kind: Kind) {
        self.kind = kind
    }

    /// Whether SQLite's own checks run as well.
    var coversStructure: Bool { kind == .everything }

    /// Does nothing for a scope that can be checked.
    ///
    /// - Throws: `.misuse` for a sample of less than 1 page, or a fraction that is not above 0 and
    ///   up to 1.
    func requireValid() throws(StoreError) {
        switch kind {
        case .everything: return
        case .pages(let count) where count >= 1: return
        case .fraction(let fraction) where fraction > 0 && fraction <= 1: return
        case .pages(let count):
            throw StoreError(
                .misuse, "a sample cannot have \(count) pages", hint: "Ask for 1 page or more.")
        case .fraction(let fraction):
            throw StoreError(
                .misuse, "a sample cannot be \(fraction) of the pages",
                hint: "Ask for a fraction above 0 and up to 1.")
        }
    }

    /// The number of pages that a scope checks in a file of `pageCount` pages: all of them, the
    /// number asked for, or the fraction asked for, rounded up.
    private func sampleCount(of pageCount: Int) -> Int {
        switch kind {
        case .everything: pageCount
        case .pages(let count): min(count, pageCount)
        case .fraction(let fraction): Int((Double(pageCount) * fraction).rounded(.up))
        }
    }

    /// The numbers of the pages to check, from 1, in ascending order. A sample always has page 1.
    ///
    /// - Parameters:
    ///   - pageCount: Pages of the main file.
    ///   - lockPage: The number of the page that is never written, and so never drawn.
    ///   - generator: The source of randomness.
    /// - Complexity: O(*pages to check*) time. Memory: O(*pages to check*) for a sample, O(1) for
    ///   everything.
    func pages(
        of pageCount: Int, lockPage: Int, using generator: inout some RandomNumberGenerator
    ) -> Selection {
        let count = pageCount < lockPage ? pageCount : pageCount - 1
        let wanted = min(sampleCount(of: count), count)
        guard wanted < count else { return Selection(all: count, lockPage: lockPage) }
        // Floyd's method: Bentley and Floyd, "A Sample of Brilliance", Communications of the ACM
        // 30 (1987). It draws without replacement, in as many steps as there are pages to draw.
        var drawn: Set<Int> = [1]
        for last in stride(from: count - wanted + 2, through: count, by: 1) {
            let number = Int.random(in: 2...last, using: &generator)
            drawn.insert(drawn.contains(number) ? last : number)
        }
        return Selection(drawn: drawn.sorted(), lockPage: lockPage)
    }

    /// Numbers of pages, in ascending order.
    struct Selection: Sequence {
        let count: Int
        private let drawn: [Int]?
        private let lockPage: Int

        init(all count: Int, lockPage: Int) {
            self.count = count
            drawn = nil
            self.lockPage = lockPage
        }

        init(drawn: [Int], lockPage: Int) {
            count = drawn.count
            self.drawn = drawn
            self.lockPage = lockPage
        }

        func makeIterator() -> some IteratorProtocol<Int> {
            (0..<count).lazy.map { index -> Int in
                let place = drawn?[index] ?? index + 1
                return place < lockPage ? place : place + 1
            }.makeIterator()
        }
    }
}
