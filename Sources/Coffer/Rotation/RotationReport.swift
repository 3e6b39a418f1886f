/// The result of a rotation: the store is under the key of a new epoch.
///
/// ```swift
/// let report = try await store.rotate()
/// print("key \(report.keyID) instead of \(report.oldKeyID), writes waited \(report.pause)")
/// ```
///
/// The report tells what is proven. A fresh connection has opened the store with the new key, and
/// failed with the old one. Every page of the store was authenticated before and, unless
/// ``verificationFailure`` says why not, after. Two things may be left to do, and happen later by
/// themselves: see ``isWholeFile`` and ``isRecorded``.
public struct RotationReport: Sendable {
    /// The number of the data key before.
    public let oldEpoch: Int
    /// The number of the data key now.
    public let epoch: Int
    /// The public id of the data key before.
    public let oldKeyID: KeyID
    /// The public id of the data key now.
    public let keyID: KeyID
    /// The public id of the root key before, 32 hex digits.
    public let oldRootID: String
    /// The public id of the root key now, 32 hex digits. `rotate` keeps the root, unless it
    /// finishes a replacement.
    public let rootID: String
    /// Pages of the store, all of them under the new key.
    public let pageCount: Int
    /// How long this store held up writes, in all tries together. Without WAL reads waited too.
    public let pause: Duration
    /// How long the whole rotation took, with both checks of all pages.
    public let duration: Duration
    /// Pages of the main file that are not under the new key yet, because their newer versions are
    /// in the WAL. 0 if ``isWholeFile``.
    public let oldPageCount: Int
    /// The reason why the WAL could not be moved; `nil` if it was moved, or if a read blocked it.
    public let checkpointFailure: StoreError?
    /// The reason why the keyring does not have the new epoch; `nil` if it has.
    public let recordFailure: StoreError?
    /// The reason why the pages could not be authenticated again after the change; `nil` if they
    /// were. Damage is thrown instead.
    public let verificationFailure: StoreError?

    /// Whether the main file without its WAL is under the new key. If not, a read of another
    /// connection keeps the WAL: a later checkpoint moves it.
    public var isWholeFile: Bool { oldPageCount == 0 }

    /// Whether the keyring has the new epoch. If not, the next opening finds the epoch by trial,
    /// and records it.
    public var isRecorded: Bool { recordFailure == nil }

    /// Whether the store has another root key than before.
    public var isNewRoot: Bool { rootID != oldRootID }

    /// Whether nothing is left to do.
    public var isFinished: Bool {
        isWholeFile && isRecorded && verificationFailure == nil
    }
}

/// How far a rotation has come.
///
/// ```swift
/// let report = try await store.rotate { progress in
///     if progress.phase == .rotating { shedLoad(for: progress.estimatedPause) }
/// }
/// ```
public struct RotationProgress: Sendable {
    /// The steps of a rotation, in their order.
    public enum Phase: String, Sendable, CaseIterable {
        /// Every page is authenticated under the old key. Reads and writes go on.
        case verifying
        /// Every page gets the new key. Writes wait, and without WAL reads too.
        case rotating
        /// The WAL is moved into the main file. Reads and writes go on.
        case movingWAL
        /// Every page is authenticated under the new key. Reads and writes go on.
        case verifyingAgain
    }

    /// The step.
    public let phase: Phase
    /// Bytes that the step has done.
    public let byteCount: Int
    /// Bytes that the step has to do; 0 if that is unknown.
    public let byteCountTotal: Int
    /// How long writes are expected to wait; `nil` while ``Phase/verifying`` measures it.
    public let estimatedPause: Duration?
}
