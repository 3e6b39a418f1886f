/// Refuses a secret in the argument list and gives the reason, before any message repeats it.
enum SecretInArguments {
    private static let names: Set<String> = [
        "passphrase", "password", "pass", "key", "raw-key", "hex-key", "hexkey", "secret",
        "identity", "recovery-key", "root-backup",
    ]

    /// - Throws: `ToolError` `.secretSource`. The message names the option but not its value.
    static func refuse(_ arguments: [String]) throws {
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
}
