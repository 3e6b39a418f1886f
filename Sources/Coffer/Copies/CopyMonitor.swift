/// How far a copy has come.
public struct CopyProgress: Sendable {
    /// What is being counted.
    public enum Step: Sendable {
        /// Rows that were written to the copy.
        case copyingRows
        /// Pages that were written to the copy.
        case copyingPages
        /// Pages of the finished copy that were authenticated.
        case verifyingPages
        /// Rows of the finished copy that were read back.
        case verifyingRows
    }

    /// What the copy is at.
    public let step: Step
    /// Rows or pages done in this step.
    public let count: Int
    /// Rows or pages of this step in all.
    public let countTotal: Int
}

/// Tells the caller of a copy how far it is, and the copy whether to go on.
struct CopyMonitor {
    let progress: ((CopyProgress) -> Void)?
    let isCancelled: () -> Bool

    /// How many rows or pages are done between two calls.
    static let interval = 256

    /// - Throws: `.cancelled`.
    func report(
        _ step: CopyProgress.Step, _ count: Int, of countTotal: Int
    ) throws(StoreError) {
        progress?(CopyProgress(step: step, count: count, countTotal: countTotal))
        guard !isCancelled() else {
            throw StoreError(.cancelled, "the task was cancelled while it copied")
        }
    }
}
