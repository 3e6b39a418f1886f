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

    /// One of `count` parts of the pages, without the structure: all parts together are every page,
    /// so that a nightly run of each part in turn covers a large store in `count` nights.
    ///
    /// ```swift
    /// let report = try await store.verify(.part(weekday, of: 7))
    /// ```
    ///
    /// A part has every `count`-th page. Each run checks the whole WAL.
    ///
    /// - Parameters:
    ///   - number: Which part, from 1 to `count`; `verify` throws `.misuse` otherwise.
    ///   - count: The number of parts, at least 1.
    public static func part(_ number: Int, of count: Int) -> VerificationScope {
        VerificationScope(kind: .part(number, count))
    }

    private enum Kind: Hashable {
        case everything
        case part(Int, Int)
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
    /// - Throws: `.misuse` for a sample of less than 1 page, a fraction that is not above 0 and up
    ///   to 1, or a part that does not exist.
    func requireValid() throws(StoreError) {
        switch kind {
        case .everything: return
        case .pages(let count) where count >= 1: return
        case .fraction(let fraction) where fraction > 0 && fraction <= 1: return
        case .part(let number, let count) where number >= 1 && number <= count: return
        case .part(let number, let count):
            throw StoreError(
                .misuse, "there is no part \(number) of \(count)",
                hint: "Ask for a part from 1 to the number of parts.")
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
        case .everything, .part: pageCount
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
    ///   everything and for a part.
    func pages(
        of pageCount: Int, lockPage: Int, using generator: inout some RandomNumberGenerator
    ) -> Selection {
        let count = pageCount < lockPage ? pageCount : pageCount - 1
        if case .part(let number, let parts) = kind {
            return Selection(every: parts, from: number, upTo: count, lockPage: lockPage)
        }
        let wanted = min(sampleCount(of: count), count)
        guard wanted < count else {
            return Selection(every: 1, from: 1, upTo: count, lockPage: lockPage)
        }
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
        private let first: Int
        private let step: Int
        private let lockPage: Int

        init(every step: Int, from first: Int, upTo last: Int, lockPage: Int) {
            count = first > last ? 0 : (last - first) / step + 1
            drawn = nil
            (self.first, self.step) = (first, step)
            self.lockPage = lockPage
        }

        init(drawn: [Int], lockPage: Int) {
            count = drawn.count
            self.drawn = drawn
            (first, step) = (1, 1)
            self.lockPage = lockPage
        }

        func makeIterator() -> some IteratorProtocol<Int> {
            (0..<count).lazy.map { index -> Int in
                let place = drawn?[index] ?? first + index * step
                return place < lockPage ? place : place + 1
            }.makeIterator()
        }
    }
}
