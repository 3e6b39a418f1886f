import Coffer
import Foundation

/// The checks of a store's keyring, and of keyrings of the store that a verb has replaced or
/// abandoned, and kept.
struct KeyringExamination {
    typealias Check = DoctorReport.Check

    private let path: String
    private let storeID: String?
    /// The paths of the kept ones, in the order of their numbers.
    private let old: [String]

    /// - Parameters:
    ///   - path: The path of the store.
    ///   - old: The names of its old keyrings, as `oldNames(among:)` finds them in its folder.
    init(of path: String, old names: [String]) {
        self.path = path
        storeID = (try? StoreFileStatus(path: path))?.storeID
        let folder = path.dropLast(URL(filePath: path).lastPathComponent.count)
        old = names.map { folder + $0 }
    }

    /// Looks for the old keyrings in the folder of the store.
    ///
    /// - Complexity: O(*names in the folder*).
    init(of path: String) {
        let url = URL(filePath: path)
        let names = FolderEntries(of: url.deletingLastPathComponent().path)?.names ?? []
        self.init(of: path, old: Self.oldNames(among: names)[url.lastPathComponent] ?? [])
    }

    /// The names of old keyrings, in the order of their numbers, by the name of their store.
    static func oldNames(among names: [String]) -> [String: [String]] {
        let old = names.filter { owner(of: $0)?.isOld == true }.sorted {
            $0.localizedStandardCompare($1) == .orderedAscending
        }
        return Dictionary(grouping: old) { owner(of: $0)?.store ?? "" }
    }

    /// The store to which a keyring of this name belongs, and whether a verb has kept it as an old
    /// one. `nil` for a name that no keyring has.
    static func owner(of name: String) -> (store: String, isOld: Bool)? {
        let stem = name.replacing(#/\.old-[0-9]+$/#, with: "")
        guard stem.hasSuffix(Keyring.fileSuffix) else { return nil }
        return (String(stem.dropLast(Keyring.fileSuffix.count)), stem != name)
    }

    /// Each check, and the path of the file that it is about. None for a store that never had a
    /// keyring.
    var checks: [(check: Check, path: String)] {
        let keyring = path + Keyring.fileSuffix
        let present = presentChecks
        let isGood = !present.isEmpty && present.allSatisfy { $0.state == .good }
        let permissions =
            present.isEmpty || !FileManager.default.fileExists(atPath: keyring)
            ? [] : [Examination.permissions("keyring", keyring, mask: 0o077, "chmod 600")]
        return (present + permissions).map { ($0, keyring) }
            + old.map { (oldCheck($0, isNeeded: !isGood), $0) }
    }

    private var presentChecks: [Check] {
        func check(_ state: Check.State, _ message: String) -> [Check] {
            [Check(name: "keyring", state: state, message: message)]
        }
        do {
            let keyring = try Keyring(of: path)
            if let storeID, storeID != keyring.storeID {
                return check(.bad, KeyringReport(keyring).otherStore(path: path))
            }
            if keyring.isReplacingRoot { return check(.warning, KeyringReport.replacing) }
            if keyring.isBeingEnabled { return check(.warning, KeyringReport.enabling) }
            return keyring.isWhole
                ? check(.good, keyring.slots.count.counted("slot"))
                : check(.warning, KeyringReport.notWhole)
        } catch let error as StoreError where error.code == .keyringMissing {
            guard let last = old.last(where: { id(of: $0) == storeID }) else { return [] }
            return check(
                .warning,
                "missing, and there is an old one. If the store has no key of its own, put it back "
                    + "with coffer key restore \(ShellWord.of(last)) \(ShellWord.of(path))")
        } catch {
            let failure = Failure(error)
            // One that this user or this version cannot read may be good.
            return failure.status == .damaged
                ? check(
                    .bad, failure.message + ": " + Remedy.ofDamage(toKeyringOf: path))
                : check(.warning, failure.message)
        }
    }

    /// - Parameter isNeeded: Whether the present keyring may not open the store.
    private func oldCheck(_ old: String, isNeeded: Bool) -> Check {
        let text =
            switch id(of: old) {
            case nil: "damaged, or not readable"
            case let id? where storeID != nil && id != storeID: "for another store, \(id)"
            default:
                "its slots open the store, or earlier copies of it"
                    + (isNeeded ? "" : ": delete it when you do not need it any more")
            }
        return Check(
            name: "old keyring", state: .warning, message: text, path: ReportedPath(old))
    }

    private func id(of old: String) -> String? {
        (try? Keyring(contentsOf: old))?.storeID
    }
}
