import Coffer
import Foundation

/// Recipes for common tasks. Each has a store of its own, and checks what it has done.
@main enum Cookbook {
    static let recipes =
        Opening.recipes + Records.recipes + Queries.recipes + Schema.recipes + KeyValues.recipes
        + Watching.recipes + Operating.recipes

    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        switch words.first {
        case "--help", "-h":
            print(
                """
                usage: Cookbook [list | NAME…]

                Cooks all recipes, or those named, each in a folder of its own that is removed
                afterwards, and says which of their checks held. The exit code is 1 if one did not.

                  list   print the name and the task of each recipe
                """)
        case "list":
            for recipe in recipes { print(line(recipe.name, recipe.task)) }
        default: await cook(words)
        }
    }

    private static func cook(_ names: [String]) async {
        let unknown = names.filter { name in !recipes.contains { $0.name == name } }
        guard unknown.isEmpty else {
            let known = "'Cookbook list' prints the names"
            complain("there is no recipe \(unknown.joined(separator: ", ")): \(known)")
            exit(2)
        }
        var failedCount = 0
        for recipe in recipes where names.isEmpty || names.contains(recipe.name) {
            if await !isGood(recipe) { failedCount += 1 }
        }
        if failedCount > 0 { exit(1) }
    }

    private static func isGood(_ recipe: Recipe) async -> Bool {
        do {
            let kitchen = try Kitchen()
            defer { kitchen.clear() }
            try await recipe.cook(kitchen)
            print(line(recipe.name, recipe.task))
            return true
        } catch {
            complain("\(recipe.name): \(error)")
            return false
        }
    }

    private static func line(_ name: String, _ task: String) -> String {
        name.padding(toLength: max(24, name.count + 1), withPad: " ", startingAt: 0) + task
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("cookbook: \(text)\n".utf8))
    }
}
