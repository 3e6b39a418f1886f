import Coffer
import Foundation

/// The public fields of a slot, in a report.
struct SlotReport: Encodable {
    let id: Int
    let kind: String
    let label: String
    let made: String
    let changed: String
    let fingerprint: String?
    let costMemoryByteCount: Int?

    init(_ slot: KeySlot) {
        id = Int(slot.id)
        kind = slot.kind.description.replacing(" ", with: "-")
        label = slot.label
        made = slot.made.ISO8601Format()
        changed = slot.changed.ISO8601Format()
        fingerprint = slot.fingerprint
        costMemoryByteCount = slot.cost?.memoryByteCount
    }

    /// The slot in one line.
    var text: String {
        var text = label.isEmpty ? kind : "\(kind), \(label)"
        text += ", made \(made.prefix(10))"
        if changed != made { text += ", changed \(changed.prefix(10))" }
        if let fingerprint { text += ", \(fingerprint)" }
        if let costMemoryByteCount { text += ", scrypt with \(costMemoryByteCount >> 20) MiB" }
        return text
    }
}

/// The public part of a keyring, in a report.
struct KeyringReport: Encodable {
    let storeID: String
    let rootID: String
    let keyID: String
    let epoch: Int
    let rootMade: String
    /// Whole days since then.
    let rootAge: Int
    let keyMade: String
    let keyAge: Int
    let rootBackupCount: Int
    let lastRootBackup: String?
    /// Whether both copies of the content in the file are whole.
    let isWhole: Bool
    /// Whether the root key is being replaced.
    let isReplacingRoot: Bool
    /// Whether `key enable` has begun and not ended.
    let isBeingEnabled: Bool
    let slots: [SlotReport]

    static let replacing =
        "its root key is being replaced: coffer rotate finishes that"
    static let enabling =
        "the store may still have its former key: run coffer key enable again as before, which "
        + "finishes"
    static let notWhole =
        "one of the two copies in the keyring is damaged: the next change of a slot mends it"

    /// The message about a keyring that lies next to a store and belongs to another one. It ends
    /// without a full stop.
    ///
    /// - Parameter path: The path of the store that the keyring lies next to.
    func otherStore(path: String) -> String {
        "the keyring is that of another store, \(storeID): put this store's back with coffer key "
            + "restore COPY \(ShellWord.of(path))"
    }

    /// Warns if the keyring belongs to another store than the file it lies next to.
    func warn(ifNotOf file: StoreFileStatus, path: String) {
        guard let id = file.storeID, id != storeID else { return }
        Terminal.warn(otherStore(path: path) + "; this store is \(id)")
    }

    init(_ keyring: Keyring) {
        storeID = keyring.storeID
        rootID = keyring.rootID
        keyID = keyring.keyID.description
        epoch = keyring.epoch
        rootMade = keyring.rootMade.ISO8601Format()
        rootAge = Self.days(since: keyring.rootMade)
        keyMade = keyring.keyMade.ISO8601Format()
        keyAge = Self.days(since: keyring.keyMade)
        rootBackupCount = keyring.rootBackups.count
        lastRootBackup = keyring.rootBackups.last?.ISO8601Format()
        isWhole = keyring.isWhole
        isReplacingRoot = keyring.isReplacingRoot
        isBeingEnabled = keyring.isBeingEnabled
        slots = keyring.slots.map { SlotReport($0) }
    }

    /// The whole days since a date, by the clock of this machine. No date of a keyring, which may
    /// be any number of seconds, has more than an `Int` holds.
    static func days(since date: Date, now: Date = .now) -> Int {
        Int((now.timeIntervalSince(date) / 86_400).rounded(.down))
    }

    private static func text(_ days: Int) -> String {
        days < 0 ? "in the future" : "\(days.counted("day")) old"
    }

    /// - Parameter known: The id of the store, if the report has it already. It is not repeated.
    func lines(isOf known: String? = nil) -> [(label: String, value: String)] {
        let idLabel = known == nil ? "store id" : "keyring of store"
        let shown =
            rootBackupCount == 0
            ? "never shown"
            : "shown \(rootBackupCount.counted("time")), last \(lastRootBackup?.prefix(10) ?? "?")"
        return (known == storeID ? [] : [(idLabel, storeID)]) + [
            ("root", "\(rootID), made \(rootMade.prefix(10)), \(Self.text(rootAge)), \(shown)"),
            ("epoch", "\(epoch), since \(keyMade.prefix(10)), \(Self.text(keyAge))"),
        ] + (isWhole ? [] : [("keyring", Self.notWhole)])
            + (isReplacingRoot ? [("keyring", Self.replacing)] : [])
            + (isBeingEnabled ? [("keyring", Self.enabling)] : [])
            + slots.map { ("slot \($0.id)", $0.text) }
    }
}

/// The report of a verb that made or changed a slot.
struct SlotResult: Report {
    let path: ReportedPath
    let slot: SlotReport
    /// A sentence that the report ends with.
    let notice: String?

    init(_ path: String, _ slot: KeySlot, notice: String? = nil) {
        self.path = ReportedPath(path)
        self.slot = SlotReport(slot)
        self.notice = notice
    }

    var lines: [(label: String, value: String)] {
        [("store", "\(path)"), ("slot \(slot.id)", slot.text)]
            + (notice.map { [("note", $0)] } ?? [])
    }
}

/// The report of a verb that replaced a keyring.
struct ReplacedKeyringResult: Report {
    let path: ReportedPath
    /// Where the keyring is that was replaced.
    let oldPath: ReportedPath?
    let slots: [SlotReport]

    /// - Parameter now: The keyring in its place; `nil` if it could not be read again.
    init(_ path: String, old: String?, now: Keyring?) {
        self.path = ReportedPath(path)
        oldPath = old.map { ReportedPath($0) }
        slots = now?.slots.map { SlotReport($0) } ?? []
    }

    var lines: [(label: String, value: String)] {
        [
            ("store", "\(path)"), ("keyring", "opens the store"),
            ("old keyring", oldPath.map { "\($0)" } ?? "none"),
        ] + slots.map { ("slot \($0.id)", $0.text) }
    }
}

extension KeySlot {
    /// The number and the label of the slot, in a message.
    var named: String { SlotReport.name(Int(id), label) }
}

extension SlotReport {
    fileprivate static func name(_ id: Int, _ label: String) -> String {
        label.isEmpty ? "slot \(id)" : "slot \(id) (\(label))"
    }

    /// The number and the label of a slot in the report of a run, in a message.
    static func name(in slot: JSONTree) -> String {
        name(slot["id"]?.integer ?? 0, slot["label"]?.text ?? "")
    }
}
