/// Numbers of pages as people read them: pages that follow each other become a run.
enum PageRuns {
    /// "3", "3, 7–9", and so on.
    static func text(of pages: [Int]) -> String {
        let runs = pages.reduce(into: [ClosedRange<Int>]()) { runs, page in
            if let last = runs.last, last.upperBound + 1 == page {
                runs[runs.count - 1] = last.lowerBound...page
            } else {
                runs.append(page...page)
            }
        }
        return runs.map(text).joined(separator: ", ")
    }

    static func text(_ run: ClosedRange<Int>) -> String {
        run.count == 1 ? "\(run.lowerBound)" : "\(run.lowerBound)–\(run.upperBound)"
    }
}
