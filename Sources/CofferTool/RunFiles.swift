import Coffer
import Synchronization

/// The files of this run, for errors that do not name the file, and for the next step.
enum RunFiles {
    private struct State {
        var store: String?
        var made: String?
        var remedy: String?
    }

    private static let state = Mutex(State())

    /// Sets the store that the run opens.
    static func opens(_ store: String) {
        state.withLock { ($0.store, $0.remedy) = (store, Remedy.ofDamage(to: store)) }
    }

    /// Sets the file that the run makes.
    static func makes(_ file: String?) {
        state.withLock { $0.made = file }
    }

    /// Forgets the files of a run that has ended.
    static func forget() {
        state.withLock { $0 = State() }
    }

    /// Sets another next step after damage than `opens` does.
    static func remedy(_ remedy: String?) {
        state.withLock { $0.remedy = remedy }
    }

    /// The next step if the store is damaged, as `Remedy.ofDamage`.
    static var remedy: String? { state.withLock { $0.remedy } }

    /// The next step if the keyring of the store is damaged.
    static var keyringRemedy: String? {
        state.withLock { $0.store }.map { Remedy.ofDamage(toKeyringOf: $0) }
    }

    /// The message of an error about the content of the store, with the store's path.
    ///
    /// A message that has the path of the file that is made is about that one.
    static func namingStore(_ message: String) -> String {
        let (store, made) = state.withLock { ($0.store, $0.made) }
        if let made, names(made, message) { return message }
        return naming(store.map { [$0] } ?? [], message)
    }

    /// The message of an error about room on the disk, with the path of the file that grows.
    static func namingGrowing(_ message: String) -> String {
        naming(state.withLock { [$0.made ?? $0.store].compactMap(\.self) }, message)
    }

    /// The message of an error of the disk, with the paths of all files that are read and written.
    static func namingAll(_ message: String) -> String {
        naming(state.withLock { [$0.store, $0.made].compactMap(\.self) }, message)
    }

    /// The message of an error about a lock, with the path of the store, and with the process that
    /// has a lock on it if one still has.
    ///
    /// Must be called at the end of the run only: looking drops this process's own locks.
    static func namingLocked(_ message: String) -> String {
        let (store, made) = state.withLock { ($0.store, $0.made) }
        guard
            let path = [store, made].compactMap(\.self).first(where: { names($0, message) })
                ?? store
        else { return message }
        let named = naming([path], message)
        let locks = LockHolders(of: path)
        guard let holder = locks.writer ?? locks.user ?? locks.reader else { return named }
        return named + " (process \(holder) has a lock on it)"
    }

    private static func naming(_ paths: [String], _ message: String) -> String {
        guard !paths.isEmpty, !paths.contains(where: { names($0, message) }) else { return message }
        return paths.joined(separator: " or ") + ": " + message
    }

    /// Whether a message has the path, perhaps as an absolute one.
    private static func names(_ path: String, _ message: String) -> Bool {
        let name = path.split(separator: "/").last.map { "/\($0)" } ?? path
        return message.contains(path) || message.contains(name)
    }
}

/// The next step after a failure, in the verbs of the tool.
enum Remedy {
    /// What to do about a damaged store: part of a sentence, without a full stop.
    static func ofDamage(to store: String) -> String {
        let backup = "restore a backup with coffer restore BACKUP \(ShellWord.of(store))"
        // In an empty file there is nothing to save.
        guard let file = try? StoreFileStatus(path: store),
            file.format != .empty || file.walByteCount + file.journalByteCount > 0
        else { return backup }
        return backup + ", or " + savingRows(of: store)
    }

    /// Advises to put back or rebuild the damaged keyring of a store. The advice is the end of a
    /// sentence, without a full stop.
    static func ofDamage(toKeyringOf store: String) -> String {
        let store = ShellWord.of(store)
        return "restore the keyring from a copy with coffer key restore COPY \(store), or make a "
            + "new one from a root backup with coffer key rebuild \(store)"
    }

    static func savingRows(of store: String) -> String {
        "save the rows that are left with coffer salvage \(ShellWord.of(store)) COPY"
    }

    /// The library's hint for a damaged file, with verbs of the tool in place of "restore it".
    ///
    /// - Parameter remedy: Part of a sentence; `nil` keeps the hint.
    static func hint(_ hint: String?, _ remedy: String?) -> String? {
        guard let remedy else { return hint }
        let sentence = remedy.prefix(1).uppercased() + remedy.dropFirst()
        guard let hint else { return sentence + "." }
        return hint.replacing(#/([Rr])estore (?:it|the \w+)(?: from a backup)?(?=[.,;:]|$)/#) {
            $0.1 == "R" ? sentence : remedy
        }
    }
}

/// A path as a shell reads it.
enum ShellWord {
    /// The path as an argument, which no verb takes for an option.
    static func argument(_ path: String) -> String {
        path.hasPrefix("-") ? "./" + path : path
    }

    static func of(_ path: String) -> String {
        let path = argument(path)
        let isPlain = path.utf8.allSatisfy { byte in
            byte >= 0x80 || "/._-+:,@%=".utf8.contains(byte)
                || UnicodeScalar(byte).properties.isAlphabetic || (0x30...0x39).contains(byte)
        }
        return isPlain && !path.isEmpty ? path : "'\(path.replacing("'", with: "'\\''"))'"
    }
}
