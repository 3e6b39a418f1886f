import ArgumentParser
import Coffer
import Foundation

/// Refuses an option that the verb does not have, and names the one that was probably meant.
///
/// The parser does the same, but only after the verb's own checks: with a mistyped `--table` these
/// would ask for a table.
enum UnknownOption {
    /// - Throws: `ToolError` `.usage`, which names the option without its value.
    static func refuse(_ arguments: [String]) throws {
        var command = try help()
        var name = ["coffer"]
        var words = arguments.prefix { $0 != "--" }[...]
        while let word = words.first, let verb = command.verb(word) {
            command = verb
            name.append(word)
            words = words.dropFirst()
        }
        let known = command.options
        var isValue = false
        for word in words {
            defer { isValue = known.contains { $0.takesValue && $0.spellings.contains(word) } }
            guard !isValue, word.hasPrefix("--") else { continue }
            let option = String(word.prefix { $0 != "=" })
            let spellings = known.flatMap(\.spellings)
            guard !spellings.contains(option) else { continue }
            let verb = name.joined(separator: " ")
            throw ToolError(
                .usage, "\(verb) has no option \(option)",
                hint: option.nearest(among: spellings).map { "Did you mean \($0)?" }
                    ?? "\(verb) --help lists the options.")
        }
    }

    /// Whether a word is an option of a verb, and not of the tool as a whole.
    static func isOfAnyVerb(_ word: String) throws -> Bool {
        let option = String(word.prefix { $0 != "=" })
        let tool = try help()
        return !tool.options.contains { $0.spellings.contains(option) }
            && tool.allVerbs.contains { $0.options.contains { $0.spellings.contains(option) } }
    }

    private static func help() throws -> Command {
        try JSONDecoder().decode(Help.self, from: Data(CofferTool._dumpHelp().utf8)).command
    }

    // MARK: The parser's description of the tool

    private struct Help: Decodable {
        let command: Command
    }

    private struct Command: Decodable {
        let commandName: String
        let subcommands: [Command]?
        let arguments: [Argument]?

        var options: [Argument] { arguments ?? [] }
        var allVerbs: [Command] { (subcommands ?? []).flatMap { [$0] + $0.allVerbs } }

        func verb(_ name: String) -> Command? {
            subcommands?.first { $0.commandName == name }
        }
    }

    private struct Argument: Decodable {
        let kind: String
        let names: [Name]?

        var spellings: [String] { (names ?? []).map(\.spelling) }
        var takesValue: Bool { kind == "option" }
    }

    private struct Name: Decodable {
        let kind: String
        let name: String

        var spelling: String { (kind == "long" ? "--" : "-") + name }
    }
}
