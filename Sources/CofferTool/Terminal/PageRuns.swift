/// Numbers of pages as people read them: pages that follow each other become a run.
enum PageRuns {
    /// "3", "3, 7–9", "3, 7–9 and 12 more", and so on.
    ///
    /// - Parameter maximumCount: The number of runs that are told. The rest is counted in pages.
    static func text(of pages: [Int], maximumCount: Int = 20) -> String {
        let runs = pages.reduce(into: [ClosedRange<Int>]()) { runs, page in
            if let last = runs.last, last.upperBound + 1 == page {
                runs[runs.count - 1] = last.lowerBound...page
            } else {
                runs.append(page...page)
            }
        }
        let told = runs.prefix(maximumCount).map(text).joined(separator: ", ")
        let rest = runs.dropFirst(maximumCount).map(\.count).reduce(0, +)
        return rest > 0 ? told + " and \(rest) more" : told
    }

    static func text(_ run: ClosedRange<Int>) -> String {
        run.count == 1 ? "\(run.lowerBound)" : "\(run.lowerBound)–\(run.upperBound)"
    }
}
