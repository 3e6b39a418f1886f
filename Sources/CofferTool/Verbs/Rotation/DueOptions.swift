import ArgumentParser
import Coffer
import Foundation

/// Which keys a rotation replaces, and which it leaves alone.
struct DueOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Leave a key alone that is younger, such as 90d, 12h or 30m. The secret is only needed "
                + "if a key is older.", valueName: "age"),
        transform: TimeSpan.init)
    var olderThan: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "With --root: leave a root key alone that is younger.", valueName: "age"),
        transform: TimeSpan.init)
    var rootOlderThan: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "Leave a key alone whose epoch is not this one, so that a repeated command rotates "
                + "once.", valueName: "number"))
    var fromEpoch: Int?

    /// Every key is due.
    static var always: DueOptions {
        var options = DueOptions()
        (options.olderThan, options.rootOlderThan, options.fromEpoch) = (nil, nil, nil)
        return options
    }

    /// The options for a run of the tool, but the epoch.
    var arguments: [String] {
        (olderThan.map { ["--older-than=\($0)"] } ?? [])
            + (rootOlderThan.map { ["--root-older-than=\($0)"] } ?? [])
    }

    /// Whether the key of a keyring is to be replaced. A replacement of the root that has begun
    /// always is.
    ///
    /// A key from the future counts as old: its date is wrong, or forged.
    func isDue(_ keyring: Keyring, now: Date = .now) -> Bool {
        guard !keyring.isReplacingRoot else { return true }
        if let fromEpoch, keyring.epoch != fromEpoch { return false }
        let limits = [(olderThan, keyring.keyMade), (rootOlderThan, keyring.rootMade)]
            .compactMap { limit, made in limit.map { (seconds: $0.seconds, made: made) } }
        guard !limits.isEmpty else { return true }
        return limits.contains { limit in
            let age = now.timeIntervalSince(limit.made)
            return age >= limit.seconds || age < -86_400
        }
    }
}
