import ArgumentParser

/// What a run over several stores records, or whether it only looks.
struct RecordOptions: ParsableArguments {
    @Flag(
        help: "Only say what would be done, and how long writes would wait. Needs no secret.")
    var dryRun = false

    @Option(
        help: ArgumentHelp(
            "Append a line of JSON for each store to a file, before its rotation and after it.",
            valueName: "path"),
        completion: .file())
    var report: String?

    @Option(
        help: ArgumentHelp(
            "Write what was done, and the dates of keys, to a file for the textfile collector of "
                + "Prometheus.", valueName: "path"),
        completion: .file())
    var prometheus: String?

    var isGiven: Bool { dryRun || report != nil || prometheus != nil }

    func validate() throws {
        guard !dryRun || (report == nil && prometheus == nil) else {
            throw ValidationError("--dry-run does nothing that --report or --prometheus records.")
        }
        for path in [report, prometheus].compactMap(\.self) { try SecretFile.requirePath(path) }
    }

    /// Refuses a file for two purposes.
    ///
    /// - Throws: `ToolError` `.usage`.
    func requireApart(from stores: StoreListOptions, _ paths: [String]) throws {
        let outputs = [
            ("--report", report), ("--prometheus", prometheus), ("--failed-out", stores.failedOut),
        ]
        var users: [String: String] = [:]
        if let list = stores.list, list != "-" { users[ReportedPath(list).absolute] = "--list" }
        for name in paths.flatMap(NewFile.names) { users[name] = "a store" }
        for (option, path) in outputs {
            guard let path else { continue }
            let other = users.updateValue(option, forKey: ReportedPath(path).absolute)
            guard let other else { continue }
            throw ToolError(
                .usage, "\(path) is named for \(option) and for \(other)",
                hint: "Name another file: nothing was written.")
        }
    }
}
