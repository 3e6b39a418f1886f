import Coffer

/// Refuses a secret in the argument list and gives the reason, before any message repeats it.
enum SecretInArguments {
    private static let names: Set<String> = [
        "passphrase", "password", "pass", "key", "raw-key", "hex-key", "hexkey", "secret",
        "identity", "recovery-key", "root-backup",
    ]

    /// - Throws: `ToolError` `.secretSource`. The message names the option but not its value.
    static func refuse(_ arguments: [String]) throws {
        if let index = firstLetters(arguments) {
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

    /// The first argument that has the letters of a key, alone or with those behind it.
    private static func firstLetters(_ arguments: [String]) -> Int? {
        arguments.indices.first { index in
            let group = arguments[index...].prefix(groupCount).joined(separator: " ")
            return areLetters(group)
                || texts(of: arguments[index]).contains { areLetters($0) || haveDashes($0) }
        }
    }

    private static let groupCount = 14

    /// The words of an argument, and those behind each `=` in it.
    private static func texts(of argument: String) -> [String] {
        var rest = argument[...]
        var texts: [String] = []
        while true {
            texts.append(rest.split(whereSeparator: \.isWhitespace).joined(separator: " "))
            guard let end = rest.firstIndex(of: "=") else { return texts }
            rest = rest[rest.index(after: end)...]
        }
    }

    /// Whether the text is a key in letters, without a slip.
    private static func areLetters(_ text: String) -> Bool {
        text.utf8.count >= groupCount * 4
            && Array(text.utf8).withUnsafeBytes { KeyCredential.areLetters($0) }
    }

    /// Whether the text has the dashes of a key in letters, which may have a slip.
    private static func haveDashes(_ text: String) -> Bool {
        var groups = text.uppercased().split(separator: "-")
        if ["ROOT", "IDENTITY"].contains(groups.first) { groups.removeFirst() }
        return (groupCount - 1...groupCount + 1).contains(groups.count)
            && groups.allSatisfy { group in
                (3...5).contains(group.utf8.count)
                    && group.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
            }
    }
}
