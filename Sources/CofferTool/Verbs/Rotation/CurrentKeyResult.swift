import ArgumentParser
import Coffer

/// What `coffer rotate` prints about a key that is not due.
struct CurrentKeyResult: Report, Decodable {
    let path: ReportedPath
    let state: RotationState
    let storeID: String
    let epoch: Int
    let keyID: String
    let rootID: String
    /// Whole days.
    let keyAge: Int
    let rootAge: Int
    /// Whether the keyring has the epoch of the file; `nil` if the run did not open the store. The
    /// other fields are then not authenticated.
    private(set) var isRecorded: Bool?
    /// Whether the main file without its WAL has the key; `nil` if the run did not open the store.
    private(set) var isWholeFile: Bool?

    /// - Parameter keyring: As it is visible without a secret.
    init(_ path: String, _ keyring: Keyring) {
        self.path = ReportedPath(path)
        state = .current
        storeID = keyring.storeID
        epoch = keyring.epoch
        keyID = keyring.keyID.description
        rootID = keyring.rootID
        keyAge = KeyringReport.days(since: keyring.keyMade)
        rootAge = KeyringReport.days(since: keyring.rootMade)
    }

    /// Finishes what an earlier rotation may have left: moves the WAL into the main file.
    init(_ path: String, finishing store: Store) async throws {
        let hasWAL = try StoreFileStatus(path: path).walByteCount > 0
        let isWhole = hasWAL ? try await store.finishRekey().isWholeFile : true
        let keyring = try store.keys.keyring
        self.init(path, keyring)
        isRecorded = try store.keyID() == keyring.keyID
        isWholeFile = isWhole
    }

    /// Whether an earlier rotation is complete, as far as is known.
    var isFinished: Bool { isRecorded != false && isWholeFile != false }

    var lines: [(label: String, value: String)] {
        [
            ("store", "\(path)"), ("result", "not due: nothing was changed"),
            ("epoch", "\(epoch), \(keyAge.counted("day")) old"), ("key id", keyID),
            ("root id", "\(rootID), \(rootAge.counted("day")) old"),
        ]
    }

    /// Says what an earlier rotation has left, and ends with 18 then.
    func requireFinished() throws {
        if isRecorded == false {
            Terminal.warn(
                "the keyring does not have the epoch of the file yet; coffer checkpoint records it")
        }
        if isWholeFile == false {
            Terminal.warn(
                "the main file without its WAL still has an earlier key: another program is "
                    + "reading; run coffer checkpoint when it has ended")
        }
        if !isFinished { throw ExitCode(ExitStatus.unfinished.rawValue) }
    }
}
