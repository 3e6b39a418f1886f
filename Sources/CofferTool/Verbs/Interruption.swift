import Foundation

/// What an interruption leaves of each verb that changes something, once its work has begun, and
/// the next step: part of a sentence.
///
/// The next step takes the secrets of the command that was interrupted, whatever their source.
enum Interruption {
    static let nothingChanged = "nothing was changed: run the same command again"

    static func ofCopy(_ path: String?) -> String {
        guard let path else { return nothingChanged }
        return "\(path) is complete or absent: run the same command again if it is absent"
    }

    static func ofSlot(_ path: String) -> String {
        "the slot was changed as a whole or not at all: look with coffer key list "
            + "\(ShellWord.of(path)), before you run it again"
    }

    static func ofSlots(_ stores: StoreListOptions) -> String {
        if stores.list == nil, stores.paths.count == 1 { return ofSlot(stores.paths[0]) }
        return "each slot was changed as a whole or not at all: look with coffer key list, before "
            + "you run it again for the stores that are left"
    }

    /// A replacement that has begun is finished by the same command.
    static let ofRoot =
        "the root key is the old one or the new one, or coffer status says that it is being "
        + "replaced: run the same command again"

    /// For a change that must not be made twice.
    static let committedOrNot =
        "the change was made as a whole or not at all: look which, before you run it again"
}

extension Init {
    var madePath: String? { store.path }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Key.Add {
    var interruption: String { Interruption.ofSlots(stores) }
}

extension Key.Change {
    var interruption: String { Interruption.ofSlot(store.path) }
}

extension Key.Remove {
    var interruption: String {
        Interruption.ofSlots((try? taken.split(stores).stores) ?? stores)
    }
}

extension Key.MakeFile {
    var madePath: String? { path }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Key.MakeIdentity {
    var madePath: String? { path }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Key.BackUp {
    var madePath: String? { to == nil ? stores.paths.last : nil }
    var interruption: String {
        to.map {
            "each copy in \($0) is complete or absent: run the same command again for those "
                + "that are absent"
        } ?? Interruption.ofCopy(madePath)
    }
}

extension Key.PutBack {
    var interruption: String {
        "the keyring is as it was, or the copy: run the same command again"
    }
}

extension Key.Enable {
    var interruption: String {
        "one of both secrets opens every row: run the same command again"
    }
}

extension Key.Rebuild {
    var interruption: String {
        "the keyring is as it was, or the new one: look with coffer key list "
            + "\(ShellWord.of(store.path)), before you run it again"
    }
}

extension Key.ExportRoot {
    var madePath: String? { newPath }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension KeyGen {
    var madePath: String? { path }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Backup {
    /// A copy for standard output is made in the folder for temporary files.
    var madePath: String? {
        copy.newPath == "-" ? FileManager.default.temporaryDirectory.path : copy.newPath
    }
    var interruption: String {
        copy.newPath == "-"
            ? "standard output has no whole copy: run the same command again"
            : Interruption.ofCopy(madePath)
    }
}

extension Upgrade {
    var madePath: String? { copy.newPath }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Encrypt {
    var madePath: String? { copy.newPath }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Decrypt {
    var madePath: String? { copy.newPath }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Salvage {
    var madePath: String? { copy.newPath }
    var interruption: String { Interruption.ofCopy(madePath) }
}

extension Export {
    var madePath: String? { output }
    var interruption: String {
        output == nil
            ? "standard output may have only a part: run the same command again"
            : Interruption.ofCopy(madePath)
    }
}

extension KeyValue.ExportEntries {
    var madePath: String? { output }
    var interruption: String {
        output == nil
            ? "standard output may have only a part: run the same command again"
            : Interruption.ofCopy(madePath)
    }
}

extension Restore {
    var madePath: String? { store.path }
    var interruption: String {
        "\(store.path) is the old store or the backup: run the same command again"
    }
}

extension Rekey {
    /// It says later what has begun.
    var interruption: String { Interruption.nothingChanged }
}

extension Revoke {
    var interruption: String { Interruption.ofRoot }
}

extension Rotate {
    var interruption: String {
        if stores.single == nil {
            return "each store has the old key or the new one, and every credential opens it: run "
                + "the same command again, with --older-than for those alone that are not done"
        }
        return root
            ? Interruption.ofRoot
            : "the key is the old one or the new one, and every credential opens the store: run "
                + "the same command again"
    }
}

extension Compact {
    var interruption: String {
        "the store has the same rows, in the old pages or in the new ones: run the same command "
            + "again"
    }
}

extension Checkpoint {
    var interruption: String { "no content is lost: run the same command again" }
}

extension JournalMode {
    var interruption: String {
        "the mode is the old or the new one, and no content is lost: run the same command again"
    }
}
