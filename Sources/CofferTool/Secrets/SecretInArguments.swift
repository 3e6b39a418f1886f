/// Refuses a secret in the argument list and gives the reason, before any message repeats it.
enum SecretInArguments {
    private static let names: Set<String> = [
        "passphrase", "password", "pass", "key", "raw-key", "hex-key", "hexkey", "secret",
        "identity", "recovery-key", "root-backup",
    ]

    /// - Throws: `ToolError` `.secretSource`. The message names the option but not its value.
    static func refuse(_ arguments: [String]) throws {
        for (index, argument) in arguments.enumerated() where isLetters(argument) {
            throw ToolError(
                .secretSource,
                "argument \(index + 1) is refused: it looks like the letters of a key, and an "
                    + "argument is seen by every user of the machine and stays in the shell's "
                    + "history",
                hint: "Replace that key if it is one. Give letters on a descriptor, in a file, or "
                    + "on the terminal.")
        }
        for argument in arguments.prefix(while: { $0 != "--" }) where argument.hasPrefix("--") {
            let option = argument.prefix { $0 != "=" }
            let isNew = option.hasPrefix("--new-")
            let name = String(option.dropFirst(isNew ? 6 : 2)).lowercased()
            guard names.contains(name) else { continue }
            let prefix = isNew ? "--new-" : "--"
            throw ToolError(
                .secretSource,
                "\(option) is refused: an argument is seen by every user of the machine and "
                    + "stays in the shell's history",
                hint: "Leave it out to be asked, or use \(prefix)passphrase-file, "
                    + "\(prefix)passphrase-fd, \(prefix)passphrase-command, "
                    + "\(prefix)passphrase-stdin or a \(prefix)raw-key-… option.")
        }
    }

    /// Whether the argument has the form of a recovery key, a root backup or an identity: at least
    /// 52 letters and digits in groups of four, perhaps with the prefix of its kind.
    private static func isLetters(_ argument: String) -> Bool {
        var text = argument.uppercased()[...]
        for prefix in ["ROOT-", "IDENTITY-"] where text.hasPrefix(prefix) {
            text = text.dropFirst(prefix.count)
        }
        let groups = text.split { $0 == "-" || $0 == " " }
        return groups.count >= 13
            && groups.allSatisfy { group in
                group.utf8.count <= 4
                    && group.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
            }
    }
}
