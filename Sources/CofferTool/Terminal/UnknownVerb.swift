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
        for argument in arguments {
            let verbs = verbs(of: command)
            guard !verbs.isEmpty, !argument.hasPrefix("-") else { return }
            if argument == "help" { continue }
            guard let verb = verbs.first(where: { $0._commandName == argument }) else {
                // A closure, because the compiler crashes on a key path through this existential.
                let names = verbs.map { $0._commandName }
                let name = path.joined(separator: " ")
                throw ToolError(
                    .usage, "\(name) has no verb \(argument)",
                    hint: argument.nearest(among: names).map { "Did you mean \(name) \($0)?" }
                        ?? "\(name) --help lists the verbs.")
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
