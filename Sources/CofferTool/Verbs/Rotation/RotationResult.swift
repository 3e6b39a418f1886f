import Coffer

/// What `coffer rotate` and `coffer revoke` print.
struct RotationResult: Report, Decodable {
    let path: ReportedPath
    let state: RotationState
    let oldEpoch: Int
    let epoch: Int
    let oldKeyID: String
    let keyID: String
    let oldRootID: String
    let rootID: String
    let pageCount: Int
    let oldPageCount: Int
    let isWholeFile: Bool
    let isRecorded: Bool
    /// Whether every page was authenticated again after the change.
    let isVerified: Bool
    /// How long writes waited.
    let pause: Double
    let seconds: Double
    let proof: String
    let engine: String

    init(_ path: String, _ report: RotationReport) {
        self.path = ReportedPath(path)
        state = .rotated
        oldEpoch = report.oldEpoch
        epoch = report.epoch
        oldKeyID = report.oldKeyID.description
        keyID = report.keyID.description
        oldRootID = report.oldRootID
        rootID = report.rootID
        pageCount = report.pageCount
        oldPageCount = report.oldPageCount
        isWholeFile = report.isWholeFile
        isRecorded = report.isRecorded
        isVerified = report.verificationFailure == nil
        proof =
            "a new connection opens with the new key and fails with the old one; every page "
            + (isVerified ? "is authentic" : "was authentic before")
        pause = Self.seconds(report.pause)
        seconds = Self.seconds(report.duration)
        engine = (try? Engine.capabilities)?.names ?? "unknown"
    }

    /// Seconds with two decimals.
    static func seconds(_ duration: Duration) -> Double {
        (duration / .seconds(1) * 100).rounded() / 100
    }

    var lines: [(label: String, value: String)] {
        [
            ("store", "\(path)"), ("pages", "\(pageCount) under the new key"),
            ("epoch", "\(epoch), after \(oldEpoch)"),
            ("key id", "\(keyID), after \(oldKeyID)"),
            ("root id", rootID == oldRootID ? rootID : "\(rootID), after \(oldRootID)"),
            (
                "main file",
                isWholeFile
                    ? "all of it under the new key"
                    : "\(oldPageCount) of \(pageCount) pages still have an earlier key"
            ),
            ("keyring", isRecorded ? "has the new epoch" : "has the old epoch"),
            ("proof", proof), ("pause", "\(pause) s"), ("time", "\(seconds) s"),
        ]
    }
}
