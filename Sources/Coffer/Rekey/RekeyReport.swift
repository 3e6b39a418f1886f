/// The result of a change of the key. A report means that the new key opens the store.
///
/// ```swift
/// let report = try await store.rekey(to: .passphrase(text))
/// if !report.isWholeFile {
///     print("\(report.oldPageCount) of \(report.pageCount) pages wait for a read to end")
/// }
/// ```
///
/// Without WAL the change is complete when `rekey` returns. In WAL mode the new pages are in the
/// WAL first, and a checkpoint moves them into the main file. A read of another connection that
/// began earlier can block that checkpoint. Until a later checkpoint succeeds, nobody opens the
/// *store* with the old key, but a copy of the main file without its WAL opens with the old key
/// only.
public struct RekeyReport: Sendable {
    /// Pages of the store, all of them under the new key.
    public let pageCount: Int
    /// Pages of the main file that are not under the new key yet, because their newer versions are
    /// in the WAL. 0 if ``isWholeFile``.
    public let oldPageCount: Int
    /// How long the change took, including the proof and the checkpoint.
    public let duration: Duration
    /// The reason why the WAL could not be moved; `nil` if it was moved, or if a read of another
    /// connection blocked it.
    public let checkpointFailure: StoreError?
    /// The new path of the keyring that the store had before; `nil` if it had none, or if it could
    /// not be renamed.
    public private(set) var abandonedKeyring: String?
    /// The reason why the keyring could not be renamed; `nil` if it was, or if there was none. A
    /// keyring that keeps its name opens earlier copies of the store, and no longer the store.
    public private(set) var keyringFailure: StoreError?

    /// Whether a checkpoint has moved the whole WAL, or there is none. A page of the main file that
    /// is not under the new key is then damaged.
    let isWALMoved: Bool

    /// Whether the main file without its WAL is under the new key.
    public var isWholeFile: Bool { oldPageCount == 0 }

    /// The report, if the WAL could not be moved for this reason.
    func failed(_ failure: StoreError) -> RekeyReport {
        RekeyReport(
            pageCount: pageCount, oldPageCount: oldPageCount, duration: duration,
            checkpointFailure: failure, isWALMoved: false)
    }

    /// Renames the keyring, and records the outcome.
    mutating func abandon(_ keyring: KeyringFile) {
        do throws(StoreError) {
            abandonedKeyring = try keyring.abandon()
        } catch {
            keyringFailure = error
        }
    }
}
