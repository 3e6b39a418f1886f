import Testing
import Workload

@testable import Coffer

@Suite struct VerificationScopeTests {
    private static let noLockPage = Int.max
    private let random = Shared(SeededGenerator(for: "a sample of pages"))

    private func pages(
        _ scope: VerificationScope, of count: Int, lockPage: Int = noLockPage
    ) -> [Int] {
        var drawn: [Int] = []
        random.update { drawn = Array(scope.pages(of: count, lockPage: lockPage, using: &$0)) }
        return drawn
    }

    @Test func `a sample has this many different pages, in order, and always page 1`() {
        for count in 1...40 {
            for wanted in 1...45 {
                let sample = pages(.sample(maximumPageCount: wanted), of: count)
                #expect(sample.count == min(wanted, count))
                #expect(sample.first == 1)
                #expect(sample == Set(sample).sorted())
                #expect(sample.allSatisfy { (1...count).contains($0) })
            }
        }
    }

    @Test func `everything is every page but the lock page`() {
        #expect(pages(.everything, of: 5) == [1, 2, 3, 4, 5])
        #expect(pages(.everything, of: 5, lockPage: 3) == [1, 2, 4, 5])
        #expect(pages(.everything, of: 5, lockPage: 6) == [1, 2, 3, 4, 5])
        #expect(pages(.everything, of: 0) == [])
    }

    @Test(arguments: [Int.max, 1, 6, 21])
    func `all parts together are every page but the lock page, each once`(lockPage: Int) {
        for count in 0...22 {
            for partCount in 1...9 {
                let all = (1...partCount).flatMap {
                    pages(.part($0, of: partCount), of: count, lockPage: lockPage)
                }
                #expect(all.sorted() == pages(.everything, of: count, lockPage: lockPage))
            }
        }
        #expect(pages(.part(2, of: 3), of: 8) == [2, 5, 8])
    }

    @Test func `a part that does not exist is misuse`() {
        for (number, count) in [(0, 7), (8, 7), (1, 0), (-1, 2)] {
            expect(.misuse) { try VerificationScope.part(number, of: count).requireValid() }
        }
    }

    @Test func `the lock page is never drawn and all others are`() {
        var seen: Set<Int> = []
        for _ in 0..<500 {
            let sample = pages(.sample(maximumPageCount: 4), of: 10, lockPage: 6)
            #expect(sample.count == 4)
            seen.formUnion(sample)
        }
        #expect(seen == [1, 2, 3, 4, 5, 7, 8, 9, 10])
    }

    @Test func `each page is drawn about as often as another`() {
        var counts = [Int](repeating: 0, count: 21)
        let runCount = 4000
        for _ in 0..<runCount {
            for page in pages(.sample(maximumPageCount: 6), of: 20) { counts[page] += 1 }
        }
        #expect(counts[1] == runCount)
        // 5 of 19: 1053 on average, with a standard deviation of 28.
        #expect(counts[2...].allSatisfy { (853...1253).contains($0) }, "\(counts)")
    }

    @Test func `a fraction is rounded up to whole pages`() {
        #expect(pages(.sample(fraction: 0.25), of: 8).count == 2)
        #expect(pages(.sample(fraction: 0.25), of: 9).count == 3)
        #expect(pages(.sample(fraction: 1e-9), of: 9) == [1])
        #expect(pages(.sample(fraction: 1), of: 9).count == 9)
    }

    @Test func `an impossible sample is misuse`() {
        for count in [0, -1, Int.min] {
            expect(.misuse) { try VerificationScope.sample(maximumPageCount: count).requireValid() }
        }
        for fraction in [0, -0.5, 1.001, .nan, .infinity] {
            expect(.misuse) { try VerificationScope.sample(fraction: fraction).requireValid() }
        }
    }
}
