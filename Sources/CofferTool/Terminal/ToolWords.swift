/// The library's messages in the words of a shell's user.
///
/// The library names what a program would call. Whoever runs `coffer` knows its verbs and options
/// instead, and can follow no hint that only Swift code could.
enum ToolWords {
    /// What the library says, and what the tool says instead. The longer of two that begin alike
    /// comes first.
    static let words = [
        ("Store.upgrade, or with `coffer upgrade`", "coffer upgrade"),
        ("Store.upgrade, or `coffer upgrade`", "coffer upgrade"),
        ("Store.upgrade", "coffer upgrade"),
        ("Store.encrypt", "coffer encrypt"), ("Store.salvage", "coffer salvage"),
        ("backup(to:key:)", "coffer backup"),
        (
            "Open it with acceptsOlderFile if it was put back on purpose",
            "If it was put back on purpose, open it with --accept-older-file"
        ),
        (
            "Pass the path of a copy that keys.backUp has made",
            "Name a file that coffer key backup has made"
        ),
        (
            "Raise maximumKeyMemoryByteCount of the configuration",
            "coffer allows no more: open the store by another credential, and change this slot"
        ),
        (
            "Put it back from a backup, or rebuild it from a root backup.",
            "A store that never had one gets it by coffer key enable. Put a lost one back with "
                + "coffer key restore, or make one from a root backup with coffer key rebuild."
        ),
        (
            "Change a slot of the keyring instead. To give the file a key of its own, pass "
                + "abandonsKeyring, or make a copy with that key.",
            "Change a slot with coffer key change. To give the store a key of its own, run coffer "
                + "rekey with --abandon-keyring."
        ),
        (
            "Allow a longer pause, at a time when few programs write",
            "Allow it with --pause-max, at a time when few programs write"
        ),
        ("End it, or pass endsOtherPrograms.", "End it, or give --end-others."),
        (
            "A call of enableKeyring has begun and not ended: until it changes the key of the "
                + "file, the key from before opens it, and the same call again finishes.",
            "A run of coffer key enable has begun and not ended: until it changes the key of the "
                + "file, the secret from before opens it, and the same command again finishes."
        ),
        ("Its list of slots has the numbers.", "coffer key list shows the numbers."),
        (
            "The list of slots tells the kind and the label of each.",
            "coffer key list shows the kind and the label of each."
        ),
        (
            "The keyring's list of slots tells which kinds of credentials open it.",
            "coffer key list shows which kinds of credentials open it."
        ),
        (
            "Keyring.replicated(to:) lists those that the replica has.",
            "coffer replica check lists those that the replica has."
        ),
        ("Or take over from ", "Or take over with --take-over-from "),
        (", by this name, if that process", ", if that process"),
        (
            "or keep the file: they stay in the replica",
            "or keep the file with --keep-file-at and that position: they stay in the replica"
        ),
        ("or raise busyTimeout", "or wait longer with --busy-timeout"),
        (
            "the store has been given its own, and store.rekey(to:) changes the key",
            "coffer rekey changes the key"
        ),
        ("rekey(to:)", "coffer rekey"),
        ("setKey(_:)", "an option such as --passphrase-file"),
        ("; name a CipherProfile instead", ""),
        ("a CipherProfile", "the store's own profile"),
        (
            "set Configuration.journalMode and open the file again",
            "coffer journal-mode changes it"
        ),
        (
            "; nest the write of another Store in this one's body, or use attach(_:as:key:) of a "
                + "Connection", copying
        ),
        ("; use attach(_:as:key:) and detach", copying),
        (
            "Run one statement at a time.",
            "coffer sql runs several as a script: with --file PATH, or with --file - from "
                + "standard input."
        ),
        (
            "or open it for reading only",
            "or copy it to another folder with coffer backup, which only reads it"
        ),
        ("; use the store's Configuration", ""),
        ("; use savepoint { }", ""),
        ("; return to commit and throw to roll back", ""),
        ("Use store.write { }", "Add --write to allow it"),
        (".portable files", "files made with --profile portable"),
    ]

    private static let copying =
        "; coffer export and coffer import copy tables from one store to another"

    static func message(_ text: String) -> String {
        words.reduce(text) { $0.replacing($1.0, with: $1.1) }
    }

    /// - Returns: `nil` if only a program in Swift could follow the hint.
    static func hint(_ text: String) -> String? {
        let text = message(text)
        return isSwift(text) ? nil : text
    }

    /// Whether a text names what only Swift code has: a call, a key path, a member, a declaration.
    static func isSwift(_ text: String) -> Bool {
        text.contains(
            #/
            \w\([\w:]*:\) | \w\(\) | \\[.A-Z] | (^|[\ (])\.[a-z] | static\ var | \{\  |
            \b(Store|Connection|Configuration)\.[a-z]\w
            /#)
    }
}
