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
}
