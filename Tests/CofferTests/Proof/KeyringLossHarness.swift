import Crypto
import Foundation
import Workload

@testable import Coffer

/// Loses power amid changes of a keyring, again and again, and tries every credential on what each
/// loss has left. The next change begins with that.
///
/// A write that was not synced leaves any of its sectors.
final class KeyringLossHarness {
    /// What happens amid a change.
    enum Trouble {
        /// The power goes.
        case powerLoss
        /// A step fails, as on a full or broken disk.
        case failure
    }

    /// A credential, by the number of its slot.
    private typealias Credentials = [UInt16: Secret]

    private struct Secret: Hashable {
        let kind: KeyringSlot.Kind
        let bytes: [UInt8]

        func credential(_ slotID: UInt16) -> KeyCredential {
            KeyCredential(
                kind: kind, secret: SecretBytes(bytes),
                slotID: kind == .external ? slotID : nil)
        }
    }

    /// The file when a step began: as the last sync left it, and as it reads.
    private struct Moment {
        let step: KeyringFile.Step?
        let durable: [UInt8]
        let current: [UInt8]
    }

    private static let sectorByteCount = 512

    /// For tests of tests: a disk that only claims to have synced.
    private let ignoresSyncs: Bool
    private let folder: TemporaryFolder
    private let path: String
    private let file: KeyringFile
    private let root: RootKey
    /// The database, which no change of a slot may touch.
    private let database: Data
    private var random: SeededGenerator
    private var credentials: Credentials
    /// Those of removed and changed slots.
    private var formerSecrets: [(slotID: UInt16, secret: Secret)] = []

    init(seed: UInt64, ignoresSyncs: Bool = false) throws {
        self.ignoresSyncs = ignoresSyncs
        random = SeededGenerator(seed: seed)
        folder = try TemporaryFolder()
        path = folder.path()
        file = KeyringFile(of: try FileLocation(path))
        let first = Secret(kind: .keyFile, bytes: [UInt8](repeating: 1, count: 32))
        credentials = [1: first]
        let store = try Store(path: path, key: .keyring(first.credential(1)))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(v)")
            try tx.execute("INSERT INTO t VALUES (7)")
        }
        try store.close()
        let areas = try file.areas()
        guard let areas else { throw WorkloadError("no keyring was made") }
        root = try areas.unlocked(
            by: first.credential(1), memoryMax: KeyringFixture.memoryMax
        ).root.copy()
        database = try Data(contentsOf: URL(filePath: path))
    }

    // MARK: Tries

    func run(_ count: Int, seed: UInt64) -> Tally {
        var tally = Tally()
        for number in 0..<count {
            let trouble: Trouble = number.isMultiple(of: 4) ? .failure : .powerLoss
            do {
                try oneChange(trouble)
                if number % 16 < 2 { try openStore() }
                tally.add([], "")
            } catch {
                tally.add(["\(error)"], "\(trouble) \(number), seed \(seed)")
                return tally
            }
        }
        return tally
    }

    private func oneChange(_ trouble: Trouble) throws {
        switch trouble {
        case .powerLoss:
            let (moments, after) = try changeToTheEnd()
            let moment = moments[Int.random(in: moments.indices, using: &random)]
            try Data(remains(of: moment)).write(to: URL(filePath: file.location.path))
            try settle(after, mustBeNew: moment.step == nil)
        case .failure:
            let failing = Int.random(in: 0..<5, using: &random)
            let steps = Shared(0)
            var file = file
            file.willStep = { _, _ throws(StoreError) in
                defer { steps.value += 1 }
                guard steps.value != failing else { throw StoreError(.full, "no room") }
            }
            let change = try nextChange()
            let after = after(change)
            do {
                try run(change, on: file)
                throw WorkloadError("a failed step \(failing) was not reported")
            } catch let error as StoreError where error.code == .full {
                try settle(after, mustBeNew: false)
            }
        }
    }

    /// Does a random change, and notes the file at the beginning of each step and at the end.
    private func changeToTheEnd() throws -> (moments: [Moment], after: Credentials) {
        let change = try nextChange()
        let after = after(change)
        let location = file.location.path
        let moments = Shared([Moment]())
        let durable = Shared(try Self.bytes(location))
        let isHonest = !ignoresSyncs
        var file = file
        file.willStep = { step, _ throws(StoreError) in
            let current = (try? Self.bytes(location)) ?? []
            moments.value.append(Moment(step: step, durable: durable.value, current: current))
            if step == .sync, isHonest { durable.value = current }
        }
        try run(change, on: file)
        let end = Moment(step: nil, durable: durable.value, current: try Self.bytes(location))
        return (moments.value + [end], after)
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path)))
    }

    /// What a loss of power leaves of a file: each sector as it was synced, or as it was written.
    private func remains(of moment: Moment) -> [UInt8] {
        var bytes = moment.durable
        let sectorCount = bytes.count / Self.sectorByteCount
        // A third each leaves nothing, a first part or arbitrary sectors of what was written.
        let style = Int.random(in: 0..<3, using: &random)
        let end = Int.random(in: 0...sectorCount, using: &random)
        for sector in 0..<sectorCount
        where style == 1 && sector < end || style == 2 && Bool.random(using: &random) {
            let range = sector * Self.sectorByteCount..<(sector + 1) * Self.sectorByteCount
            bytes.replaceSubrange(range, with: moment.current[range])
        }
        return bytes
    }

    // MARK: Changes

    private enum Change {
        case add(Secret)
        case replace(UInt16, Secret)
        case remove(UInt16)
        case countRootBackup
    }

    private func nextChange() throws -> Change {
        let ids = credentials.keys.sorted()
        let slotID = ids[Int.random(in: ids.indices, using: &random)]
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where ids.count < KeyringContent.placeCount: return .add(newSecret())
        case 1 where ids.count > 1: return .remove(slotID)
        case 2: return .countRootBackup
        default: return .replace(slotID, newSecret())
        }
    }

    private func newSecret() -> Secret {
        let kinds: [KeyringSlot.Kind] = [.keyFile, .recoveryKey, .external, .recipient]
        return Secret(
            kind: kinds[Int.random(in: kinds.indices, using: &random)],
            bytes: (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
    }

    /// The credentials after the change, once the keyring has it.
    private func after(_ change: Change) -> Credentials {
        var after = credentials
        switch change {
        case .add(let secret): after[(try? nextSlotID()) ?? 0] = secret
        case .replace(let slotID, let secret): after[slotID] = secret
        case .remove(let slotID): after[slotID] = nil
        case .countRootBackup: break
        }
        return after
    }

    private func nextSlotID() throws -> UInt16 {
        guard let area = try file.areas()?.authentic(under: root) else {
            throw WorkloadError("the keyring is gone")
        }
        return area.content.nextSlotID
    }

    private func run(_ change: Change, on file: KeyringFile) throws {
        guard let content = try file.areas()?.authentic(under: root)?.content else {
            throw WorkloadError("the keyring is gone")
        }
        let lock = try KeyringLock(file, timeout: .seconds(60))
        switch change {
        case .add(let secret):
            let prepared = try prepared(secret, content)
            _ = try lock.change(under: root) { (content) throws(StoreError) in
                _ = try content.add(prepared, under: root, now: 0)
            }
        case .replace(let slotID, let secret):
            let prepared = try prepared(secret, content, replacing: slotID)
            _ = try lock.change(under: root) { (content) throws(StoreError) in
                _ = try content.replace(slotID, by: prepared, under: root, now: 0)
            }
        case .remove(let slotID):
            _ = try lock.change(under: root) { (content) throws(StoreError) in
                try content.remove(slotID)
            }
        case .countRootBackup:
            _ = try lock.change(under: root) { $0.rootBackupCount += 1 }
        }
    }

    private func prepared(
        _ secret: Secret, _ content: KeyringContent, replacing slotID: UInt16? = nil
    ) throws -> PreparedSlot {
        try PreparedSlot(
            Self.newSlot(secret), label: SlotLabel("a"), cost: .standard,
            memoryMax: KeyringFixture.memoryMax, for: content, replacing: slotID)
    }

    private static func newSlot(_ secret: Secret) throws -> NewSlot {
        // The blob of an external secret says nothing here: the model knows the secret.
        guard secret.kind == .external else { return try NewSlot(for: secret.credential(0)) }
        return NewSlot(.external, SecretBytes(secret.bytes)) { _ in [1, 2, 3] }
    }

    // MARK: Checks

    /// Tries all credentials, and takes for true what opens: what was before the change, or what
    /// it makes.
    private func settle(_ after: Credentials, mustBeNew: Bool) throws {
        let secrets = Set(credentials.values).union(after.values)
        guard let areas = try file.areas() else { throw WorkloadError("the keyring is gone") }
        var opened: Credentials = [:]
        for secret in secrets {
            for slotID in Set(credentials.keys).union(after.keys)
            where credentials[slotID] == secret || after[slotID] == secret {
                guard try Self.openedSlot(areas, secret, slotID) == slotID else { continue }
                opened[slotID] = secret
            }
        }
        guard opened == after || opened == credentials && !mustBeNew else {
            throw WorkloadError(
                "slots \(opened.keys.sorted()) open; before the change \(credentials.keys.sorted())"
                    + " did, after it \(after.keys.sorted()) should")
        }
        for (slotID, secret) in formerSecrets.suffix(4)
        where try Self.openedSlot(areas, secret, slotID) != nil {
            throw WorkloadError("a removed credential opens the keyring again")
        }
        for (slotID, secret) in credentials where !opened.values.contains(secret) {
            formerSecrets.append((slotID, secret))
        }
        credentials = opened
    }

    /// The slot that the secret opens; `nil` for none.
    private static func openedSlot(
        _ areas: KeyringAreas, _ secret: Secret, _ slotID: UInt16
    ) throws -> UInt16? {
        let result = Result { () throws(StoreError) in
            try areas.unlocked(
                by: secret.credential(slotID), memoryMax: KeyringFixture.memoryMax
            ).slotID
        }
        if case .failure(let error) = result, error.code == .wrongKey { return nil }
        return try result.get()
    }

    /// Opens the store by a credential of its keyring, and reads its row.
    private func openStore() throws {
        guard try Data(contentsOf: URL(filePath: path)) == database else {
            throw WorkloadError("the database was written")
        }
        guard let (slotID, secret) = credentials.randomElement(using: &random) else { return }
        let store = try Store(
            path: path, key: .keyring(secret.credential(slotID)), mode: .readOnly)
        let count = try store.read { tx in try tx.rows("SELECT v FROM t").count }
        try store.close()
        guard count == 1 else { throw WorkloadError("the row is gone") }
    }
}
