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
        let call = try Call(arguments)
        for (_, word) in call.words where word.hasPrefix("--") {
            let option = String(word.prefix { $0 != "=" })
            guard !call.spellings.contains(option) else { continue }
            throw ToolError(
                .usage, "\(call.verb) has no option \(option)",
                hint: option.nearest(among: call.spellings).map { "Did you mean \($0)?" }
                    ?? "\(call.verb) --help lists the options.")
        }
    }

    /// Refuses a word that begins with one dash and is not an option, such as `-high`.
    ///
    /// The parser reads it as the options `-h -i -g -h`, and shows help: a success.
    ///
    /// - Throws: `ToolError` `.usage`, which does not repeat the word: it may be a value to keep.
    static func refuseDashes(_ arguments: [String]) throws {
        func isDashed(_ word: String) -> Bool {
            word.hasPrefix("-") && !word.hasPrefix("--") && word.utf8.count > 1
        }
        let words = arguments.prefix { $0 != "--" }
        guard words.contains(where: { isDashed($0) && $0 != "-h" }) else { return }
        let call = try Call(arguments)
        for (index, word) in call.words where isDashed(word) && word != "-h" {
            guard !call.spellings.contains(word) else { continue }
            throw ToolError(
                .usage,
                "argument \(index + 1) begins with a dash, and is not an option of \(call.verb)",
                hint: "Write -- before the arguments that are not options, or ./ before the name "
                    + "of a file.")
        }
    }

    /// The words of a command line behind its verb.
    private struct Call {
        /// The tool's name and the verb's.
        let verb: String
        /// All spellings of the verb's options.
        let spellings: [String]
        /// Arguments in front of `--`, without the values of options. Positions count from 0.
        let words: [(index: Int, word: String)]

        init(_ arguments: [String]) throws {
            var command = try help()
            var name = ["coffer"]
            var words = arguments.prefix { $0 != "--" }[...]
            while let word = words.first, let verb = command.verb(word) {
                command = verb
                name.append(word)
                words = words.dropFirst()
            }
            verb = name.joined(separator: " ")
            spellings = command.options.flatMap(\.spellings)
            var found: [(Int, String)] = []
            var isValue = false
            for (index, word) in zip(words.indices, words) {
                if !isValue { found.append((index, word)) }
                isValue = command.options.contains {
                    $0.takesValue && $0.spellings.contains(word)
                }
            }
            self.words = found
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
