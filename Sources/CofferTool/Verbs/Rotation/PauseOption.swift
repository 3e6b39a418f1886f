import ArgumentParser

/// How long the writes of other programs may wait.
struct PauseOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The longest time that writes may wait, by estimate: 30 without this option, and at "
                + "most 86400.", valueName: "seconds"))
    var pauseMax: Double?

    var duration: Duration? { pauseMax.map { .seconds($0) } }

    /// The option for a run of the tool.
    var arguments: [String] { pauseMax.map { ["--pause-max=\($0)"] } ?? [] }

    func validate() throws {
        if let pauseMax, !(pauseMax > 0 && pauseMax <= 86_400) {
            throw ValidationError("--pause-max must be above 0 and at most 86400 seconds.")
        }
    }
}
