import Coffer
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// One store in the report of a list, and one line of a report file.
struct RotationEvent: Encodable, Sendable {
    var event: RotationState
    let time = Date.now
    let host = Self.host
    let uid = Int(getuid())
    let path: ReportedPath
    var storeID: String?
    var byteCount: Int?
    /// The epoch before.
    var oldEpoch: Int?
    var oldKeyID: String?
    var oldRootID: String?
    var epoch: Int?
    var keyID: String?
    var rootID: String?
    /// When the data key was made, and its age in whole days.
    var keyMade: Date?
    var keyAge: Int?
    var rootMade: Date?
    var rootAge: Int?
    var rootBackupCount: Int?
    var slots: [SlotReport]?
    /// The slots that the keyring had before and has no longer.
    var droppedSlots: [SlotReport]?
    var pageCount: Int?
    /// Seconds.
    var pause: Double?
    var seconds: Double?
    var isRecorded: Bool?
    var isWholeFile: Bool?
    var isVerified: Bool?
    var engine: String?
    /// Free bytes of the file system. Only `--dry-run` has it.
    var freeByteCount: Int?
    /// Seconds. Only `--dry-run` has it.
    var expectedPause: Double?
    var exitCode: Int32?
    var code: String?
    var message: String?
    var hint: String?
    var warnings: [String]?

    init(_ event: RotationState, _ path: String) {
        self.event = event
        self.path = ReportedPath(path)
    }

    /// Takes what a keyring says now. `started` and `rotated` have its key as the old one.
    init(_ event: RotationState, _ facts: RotationFacts) {
        self.init(event, facts.path)
        byteCount = facts.file.byteCount
        take(facts.keyring)
        if event == .started {
            (oldEpoch, oldKeyID, oldRootID) = (epoch, keyID, rootID)
            (epoch, keyID, rootID) = (nil, nil, nil)
        }
    }

    init(_ path: String, _ failure: Failure) {
        self.init(.failed, path)
        take(failure)
    }

    init(_ facts: RotationFacts, _ failure: Failure) {
        self.init(.failed, facts)
        take(failure)
    }

    private mutating func take(_ failure: Failure) {
        if failure.status == .interrupted { event = .interrupted }
        (exitCode, code) = (failure.exitCode, failure.code)
        (message, hint) = (failure.message, failure.hint)
    }

    mutating func take(_ keyring: Keyring) {
        storeID = keyring.storeID
        epoch = keyring.epoch
        keyID = keyring.keyID.description
        rootID = keyring.rootID
        (keyMade, rootMade) = (keyring.keyMade, keyring.rootMade)
        keyAge = KeyringReport.days(since: keyring.keyMade)
        rootAge = KeyringReport.days(since: keyring.rootMade)
        rootBackupCount = keyring.rootBackups.count
        slots = keyring.slots.map { SlotReport($0) }
    }

    mutating func take(_ result: RotationResult) {
        (oldEpoch, oldKeyID, oldRootID) = (result.oldEpoch, result.oldKeyID, result.oldRootID)
        (epoch, keyID, rootID) = (result.epoch, result.keyID, result.rootID)
        (pageCount, pause, seconds) = (result.pageCount, result.pause, result.seconds)
        (isRecorded, isWholeFile) = (result.isRecorded, result.isWholeFile)
        (isVerified, engine) = (result.isVerified, result.engine)
    }

    mutating func take(_ result: CurrentKeyResult) {
        (storeID, epoch, keyID, rootID) =
            (result.storeID, result.epoch, result.keyID, result.rootID)
        (isRecorded, isWholeFile) = (result.isRecorded, result.isWholeFile)
    }

    /// The line about the store in the output for people.
    var line: String { path.before(text) }

    private var text: String {
        switch event {
        case .wouldRotate, .current:
            let age = "the key is \((keyAge ?? 0).counted("day")) old"
            let rest = [message].compactMap(\.self) + (warnings ?? [])
            if event == .current, message != nil { return rest.joined(separator: "; ") }
            guard let byteCount, let freeByteCount, let expectedPause else {
                return ([age] + rest).joined(separator: "; ")
            }
            let pause = expectedPause < 0.1 ? "less than 0.1 s" : "\(expectedPause) s or more"
            let plan =
                age + ", \(ProgressLine.bytes(byteCount)), "
                + "\(ProgressLine.bytes(freeByteCount)) free, writes wait for \(pause)"
            return ([plan] + rest).joined(separator: "; ")
        case .foundRotated:
            let epochs = "epoch \(epoch ?? 0) after \(oldEpoch ?? 0)"
            return ([epochs] + (warnings ?? [])).joined(separator: "; ")
        default:
            return ([message].compactMap(\.self) + (warnings ?? [])).joined(separator: "; ")
        }
    }

    /// The name of this machine, without a look at the network.
    private static let host: String = {
        var name = utsname()
        guard uname(&name) == 0 else { return "" }
        return withUnsafeBytes(of: name.nodename) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
    }()
}

/// What is visible of a store without a secret.
struct RotationFacts: Sendable {
    let path: String
    let file: StoreFileStatus
    let keyring: Keyring

    /// Whether pages of an earlier rotation may be in the WAL alone. It then has every page of the
    /// store.
    var mayOweCheckpoint: Bool {
        file.walByteCount > 0 && file.walByteCount >= file.byteCount
    }

    /// - Throws: `StoreError` `.keyringMissing`; as `StoreFileStatus` and `Keyring`.
    init(_ path: String) throws {
        self.path = path
        file = try StoreFileStatus(path: path)
        keyring = try Keyring(of: path)
    }
}
