import ArgumentParser

/// Options that select entries of a bucket by their keys.
struct SelectionOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Only text keys that begin with this text.", valueName: "text"))
    var prefix: String?
    @Option(help: ArgumentHelp("Only this key and later ones.", valueName: "key"))
    var from: String?
    @Option(help: ArgumentHelp("Only keys before this one.", valueName: "key"))
    var below: String?
    @Option(
        help: ArgumentHelp(
            "Go on after this key, the last one of an earlier list.", valueName: "key"))
    var after: String?
    @Flag(help: "From the last key to the first.")
    var reverse = false
    @Option(help: ArgumentHelp("At most this many entries.", valueName: "number"))
    var limit: Int?

    func validate() throws {
        guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
    }

    /// Whether they need a bucket with keys.
    var isRange: Bool { prefix != nil || from != nil || below != nil || after != nil || reverse }

    var selection: StoredBucket.Selection {
        StoredBucket.Selection(
            prefix: prefix, from: from, below: below, after: after, isReversed: reverse,
            limit: limit)
    }
}
