/// How far a copy has come.
public struct CopyProgress: Sendable {
    /// A kind of work whose rows or pages are counted.
    public enum Step: Sendable {
        /// Pages of the source that were authenticated before the copy, by `Store.salvage` and
        /// `Store.restore`.
        case readingPages
        /// Rows that were written to the copy.
        case copyingRows
        /// Pages that were written to the copy.
        case copyingPages
        /// Pages of the finished copy that were authenticated. `compact()` counts those whose
        /// structure was checked, all at once, and authenticates them in `replacingPages`.
        case verifyingPages
        /// Rows of the finished copy that were read back.
        case verifyingRows
        /// Pages of the checked copy that were authenticated and written to the store, by
        /// `compact()`.
        case replacingPages
    }

    /// The current step.
    public let step: Step
    /// Rows or pages done in this step.
    public let count: Int
    /// The total of rows or pages in this step.
    public let countTotal: Int

    package init(step: Step, count: Int, countTotal: Int) {
        (self.step, self.count, self.countTotal) = (step, count, countTotal)
    }
}

/// Reports progress to the caller of a copy, and stops the copy when it is cancelled.
struct CopyMonitor {
    let progress: ((CopyProgress) -> Void)?
    /// Of the caller's task; `nil` if nobody can cancel the copy.
    var cancellation: Cancellation?

    /// The number of rows or pages between two reports.
    static let interval = 256

    /// - Throws: `.cancelled`.
    func report(
        _ step: CopyProgress.Step, _ count: Int, of countTotal: Int
    ) throws(StoreError) {
        progress?(CopyProgress(step: step, count: count, countTotal: countTotal))
        try requireNotCancelled()
    }

    func requireNotCancelled() throws(StoreError) {
        guard cancellation?.isCancelled != true else {
            throw StoreError(.cancelled, "the task was cancelled while it copied")
        }
    }
}
