import ArgumentParser
import Coffer

/// `coffer key`
struct Key: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Looks after the keyring of a store: the credentials that open it.",
        discussion: """
            A keyring is the file STORE.keyring. It has one slot for each credential: a \
            passphrase, a key file, a recovery key on paper, the public key of a person or \
            service, or a secret that a service such as a KMS has wrapped. Changing a slot takes \
            milliseconds, whatever the size of the store. Without the keyring no credential opens \
            the store: keep copies of it.

            EXAMPLES
              coffer init notes.db --keyring
              coffer key list notes.db
              coffer key add notes.db --label ops
              coffer key change notes.db 2
              coffer key remove notes.db 2
              coffer key make-identity billing.identity > billing.recipient
              coffer key add notes.db --label billing --recipient billing.recipient
              coffer sql notes.db --identity-file billing.identity
              coffer key add notes.db --label kms --wrap-command 'kms encrypt'
              coffer sql notes.db --unwrap-command 'kms decrypt'
              coffer key backup notes.db notes.keyring.bak
            """,
        subcommands: [
            Add.self, Change.self, Remove.self, ListSlots.self, Test.self, MakeFile.self,
            MakeIdentity.self, BackUp.self, PutBack.self, Rebuild.self, ExportRoot.self,
        ])
}

/// What a slot of a keyring shows, in a report.
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
    let keyMade: String
    let rootBackupCount: Int
    let lastRootBackup: String?
    let slots: [SlotReport]

    init(_ keyring: Keyring) {
        storeID = keyring.storeID
        rootID = keyring.rootID
        keyID = keyring.keyID.description
        epoch = keyring.epoch
        rootMade = keyring.rootMade.ISO8601Format()
        keyMade = keyring.keyMade.ISO8601Format()
        rootBackupCount = keyring.rootBackups.count
        lastRootBackup = keyring.rootBackups.last?.ISO8601Format()
        slots = keyring.slots.map { SlotReport($0) }
    }

    var lines: [(label: String, value: String)] {
        let shown =
            rootBackupCount == 0
            ? "never shown"
            : "shown \(rootBackupCount.counted("time")), last \(lastRootBackup?.prefix(10) ?? "?")"
        return [
            ("root", "\(rootID), made \(rootMade.prefix(10)), \(shown)"),
            ("epoch", "\(epoch), since \(keyMade.prefix(10))"),
        ] + slots.map { ("slot \($0.id)", $0.text) }
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
