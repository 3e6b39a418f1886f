/// The result of a change of the key. A report means that the new key opens the store.
///
/// ```swift
/// let report = try await store.rekey(to: .passphrase(text))
/// if !report.isWholeFile {
///     print("\(report.oldPageCount) of \(report.pageCount) pages wait for a read to end")
/// }
/// ```
///
/// Without WAL all of it is done when `rekey` returns. In WAL the new pages are in the log first,
/// and a checkpoint moves them into the main file. A read of another connection that began before
/// can be in its way. Until a later checkpoint gets through, nobody opens the *store* with the old
/// key, but a copy of the main file without its log opens with the old key alone.
public struct RekeyReport: Sendable {
    /// Pages of the store, all of them under the new key.
    public let pageCount: Int
    /// Pages of the main file that are not under the new key yet: newer ones in the log stand for
    /// them. 0 where ``isWholeFile``.
    public let oldPageCount: Int
    /// How long it took, with the proof and the checkpoint.
    public let duration: Duration
    /// Why the log could not be moved; `nil` if it was, or if a read of another connection was in
    /// the way.
    public let checkpointFailure: StoreError?

    /// Whether a checkpoint has moved all of the log, or there is none: a page of the main file
    /// that is not under the new key is then damaged.
    let isLogMoved: Bool

    /// Whether the main file alone is under the new key.
    public var isWholeFile: Bool { oldPageCount == 0 }
}
