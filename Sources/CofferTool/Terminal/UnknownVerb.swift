import ArgumentParser
import Coffer

/// Refuses a verb that does not exist, and names the one that was probably meant.
///
/// The parser would call it an unexpected argument.
enum UnknownVerb {
    /// - Throws: `ToolError` `.usage`.
    static func refuse(_ arguments: [String]) throws {
        var path = ["coffer"]
        var command: any ParsableCommand.Type = CofferTool.self
        var early: [String] = []
        for argument in arguments {
            let verbs = verbs(of: command)
            guard !verbs.isEmpty else { return }
            if argument == "help" { continue }
            guard !argument.hasPrefix("-") else {
                early.append(argument)
                continue
            }
            // Others are the tool's own, such as --help, or a mistake that the parser tells.
            for option in early { guard try UnknownOption.isOfAnyVerb(option) else { return } }
            // A closure, because the compiler crashes on a key path through this existential.
            let names = verbs.map { $0._commandName }
            let name = path.joined(separator: " ")
            guard let verb = verbs.first(where: { $0._commandName == argument }) else {
                let nearest = argument.nearest(among: names)
                // It may be the value of the option before it, which the parser refuses.
                guard early.isEmpty || nearest != nil else { return }
                throw ToolError(
                    .usage, "\(name) has no verb \(argument)",
                    hint: nearest.map { "Did you mean \(name) \($0)?" }
                        ?? "\(name) --help lists the verbs.")
            }
            if let early = early.first {
                throw ToolError(
                    .usage, "the option \(early) comes before the verb",
                    hint: "Options come after it: \(name) \(argument) \(early).")
            }
            path.append(argument)
            command = verb
        }
    }

    private static func verbs(of command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        let configuration = command.configuration
        return configuration.subcommands
            + configuration.groupedSubcommands.flatMap { $0.subcommands }
    }
}
