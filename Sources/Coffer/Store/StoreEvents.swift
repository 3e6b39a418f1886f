import Logging

/// The log messages of a store; `Configuration.logger` has the table.
///
/// Errors that concern only the caller are thrown, not logged. A message has an error's code, never
/// its text, because the text has the SQL, which may hold values. Ordinary reads and writes log
/// nothing.
struct StoreEvents: Sendable {
    private let logger: Logger?

    init(_ logger: Logger?, path: String) {
        var logger = logger
        logger?[metadataKey: "path"] = "\(path)"
        self.logger = logger
    }

    // MARK: Life

    func opened(
        _ profile: CipherProfile, _ journalMode: Configuration.JournalMode,
        derivation: Duration
    ) {
        logger?.debug(
            "store opened",
            metadata: [
                "profile": "\(profile)", "journalMode": "\(journalMode)",
                "derivation": "\(derivation)",
            ])
    }

    func closed() {
        logger?.debug("store closed")
    }

    func suspended() {
        logger?.debug("store suspended")
    }

    func resumed() {
        logger?.debug("store resumed")
    }

    func reopened() {
        logger?.notice("store reopened with another key")
    }

    func rekeyBegins() {
        logger?.info("rekey begins")
    }

    func rekeyed(since beginning: ContinuousClock.Instant) {
        logger?.notice(
            "the key was changed", metadata: ["duration": "\(beginning.duration(to: .now))"])
    }

    /// Logs that the store has the new key, but its main file without the WAL does not.
    func rekeyIsUnfinished(_ report: RekeyReport) {
        logger?.warning(
            "the main file keeps the old key until a checkpoint completes",
            metadata: Self.facts(report.checkpointFailure).merging([
                "pages": "\(report.oldPageCount)"
            ]) { $1 })
    }

    func rekeyFailed(_ failure: RekeyFailure) {
        let text: Logger.Message =
            switch failure.key {
            case .old: "the key was not changed"
            case .new: "the key was changed, but the store could not continue"
            case .neither: "neither the old key nor the new one opens the file"
            case .unproven: "it is not known whether the key was changed"
            }
        logger?.error(text, metadata: Self.facts(failure.error))
    }

    // MARK: Rotation

    func rotationWillPause(_ estimate: Duration) {
        logger?.notice(
            "writes will wait while the key is rotated", metadata: ["estimate": "\(estimate)"])
    }

    func rotated(from old: UInt32, to new: UInt32, pause: Duration) {
        logger?.notice(
            "the key was rotated",
            metadata: ["from": "\(old)", "to": "\(new)", "pause": "\(pause)"])
    }

    /// Logs that the keyring does not have the epoch of the file yet.
    func rotationIsUnrecorded(_ error: StoreError) {
        logger?.warning(
            "the new epoch could not be recorded in the keyring", metadata: Self.facts(error))
    }

    func followedRotation(epoch: UInt32) {
        logger?.notice(
            "another process has rotated the key, and the store goes on under the new one",
            metadata: ["epoch": "\(epoch)"])
    }

    // MARK: The keyring

    /// The changes of a slot that are logged.
    enum SlotChange: String { case added, changed, renamed, removed }

    func slotChanged(_ change: SlotChange, _ id: KeySlot.ID, _ kind: KeySlot.Kind) {
        logger?.notice(
            "a slot of the keyring was \(change.rawValue)",
            metadata: ["slot": "\(id)", "kind": "\(kind)"])
    }

    func rootBackupBegins(count: Int) {
        logger?.notice("the root key is shown as a root backup", metadata: ["count": "\(count)"])
    }

    // MARK: The file

    /// Logs the error if it is `.damaged` or `.wrongKey` and the file of this connection caused it;
    /// otherwise logs nothing.
    func failed(_ error: any Error, on connection: Connection) {
        // The error may come from another store that was used inside the body.
        guard let error = error as? StoreError, let handle = connection.handle else { return }
        if handle.sawFailure(of: error.code) { failed(error) }
    }

    /// Logs an error of one of the store's own connections if it is `.damaged` or `.wrongKey`;
    /// otherwise logs nothing.
    func failed(_ error: StoreError) {
        switch error.code {
        case .damaged: logger?.error("damage found", metadata: Self.facts(error))
        case .wrongKey: logger?.error("another process has changed the key")
        default: break
        }
    }

    func verificationFoundDamage(pages: [Int]) {
        logger?.error("verification found damage", metadata: ["pages": Self.text(pages)])
    }

    // MARK: The WAL

    func checkpointFailed(_ error: StoreError) {
        logger?.warning("checkpoint failed", metadata: Self.facts(error))
    }

    func walIsTooLong(pageCount: Int, maximumPageCount: Int, isOtherProcess: Bool) {
        logger?.warning(
            isOtherProcess
                ? "another process keeps the write-ahead log above its bound"
                : "readers keep the write-ahead log above its bound",
            metadata: ["pages": "\(pageCount)", "maximumPageCount": "\(maximumPageCount)"])
    }

    func expiredSnapshots(count: Int, age: Duration) {
        logger?.warning(
            "snapshots were ended for the write-ahead log",
            metadata: ["count": "\(count)", "age": "\(age)"])
    }

    // MARK: Writes

    /// Logs that SQLite ended a transaction that several writes shared.
    ///
    /// - Parameters:
    ///   - count: The bodies that are undone although they did nothing wrong.
    ///   - error: What ended the transaction; `nil` if no body failed.
    func groupUndone(count: Int, _ error: (any Error)?) {
        logger?.warning(
            "writes were rolled back with another one",
            metadata: Self.facts(error).merging(["count": "\(count)"]) { $1 })
    }

    /// Logs that COMMIT failed.
    ///
    /// - Parameters:
    ///   - count: The bodies that the commit was to make durable.
    ///   - error: Why it failed.
    func commitFailed(count: Int, _ error: StoreError) {
        logger?.warning(
            "commit failed", metadata: Self.facts(error).merging(["count": "\(count)"]) { $1 })
    }

    // MARK: Errors

    private static func facts(_ error: (any Error)?) -> Logger.Metadata {
        guard let error = error as? StoreError else { return [:] }
        var facts: Logger.Metadata = ["code": "\(error.code)"]
        if let resultCode = error.resultCode { facts["resultCode"] = "\(resultCode)" }
        if !error.pages.isEmpty { facts["pages"] = text(error.pages) }
        return facts
    }

    /// The first 16 numbers, separated by spaces, and an ellipsis if there are more.
    private static func text(_ pages: [Int]) -> Logger.MetadataValue {
        let first = pages.prefix(16).map(String.init).joined(separator: " ")
        return "\(first)\(pages.count > 16 ? " …" : "")"
    }
}

extension Handle {
    /// Whether a page of the file failed (`.damaged`), or its key did (`.wrongKey`); `false` for
    /// other codes.
    fileprivate func sawFailure(of code: StoreError.Code) -> Bool {
        switch code {
        case .damaged: failures.sawDamage
        case .wrongKey: failures.sawWrongKey
        default: false
        }
    }
}
