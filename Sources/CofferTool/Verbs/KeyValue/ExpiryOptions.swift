import ArgumentParser

/// When a new entry ends.
struct ExpiryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "End the entry so long from now: 90s, 15m, 2h or 7d; the default is the bucket's "
                + "lifetime.",
            valueName: "duration"),
        transform: EntryEnd.after)
    var expiresAfter: EntryEnd?
    @Option(
        help: ArgumentHelp(
            "End the entry at this time: 2026-12-24T18:00:00Z or with +01:00.", valueName: "time"),
        transform: EntryEnd.at)
    var expiresAt: EntryEnd?

    /// `nil` if the bucket's lifetime decides.
    var end: EntryEnd? { expiresAfter ?? expiresAt }

    func validate() throws {
        guard expiresAfter == nil || expiresAt == nil else {
            throw ValidationError("--expires-after and --expires-at exclude each other.")
        }
        try end?.requireFuture()
    }
}
