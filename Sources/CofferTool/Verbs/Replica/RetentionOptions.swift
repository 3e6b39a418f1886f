import ArgumentParser
import CofferReplica

/// Options for snapshots: how often they are made, and how many are kept.
struct RetentionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Make a snapshot this often, if something has changed: 1d without this option.",
            valueName: "time"),
        transform: TimeSpan.init)
    var snapshotEvery: TimeSpan?

    @Option(
        help: ArgumentHelp("Keep so many snapshots: 30 without this option.", valueName: "count"))
    var keepSnapshots = ReplicaOptions().keptSnapshotCount

    @Option(
        help: ArgumentHelp(
            "Keep every commit since the oldest of so many snapshots, the newest included: 7 "
                + "without this option. Of the time before, only the snapshots are kept.",
            valueName: "count"))
    var keepCommitsSince = ReplicaOptions().keptHistorySnapshotCount

    @Flag(help: "Delete nothing: coffer replica purge does, with other credentials.")
    var noDelete = false

    func validate() throws {
        guard snapshotEvery?.microseconds ?? .max >= 60_000_000 else {
            throw ValidationError("Snapshots are made once a minute at most.")
        }
        guard keepSnapshots >= 2, keepCommitsSince >= 2 else {
            throw ValidationError("Keep at least 2 snapshots, and the commits since the second.")
        }
        guard keepCommitsSince <= keepSnapshots else {
            throw ValidationError(
                "Commits are kept since a snapshot that is kept: --keep-commits-since is at most "
                    + "--keep-snapshots, which is \(keepSnapshots).")
        }
    }

    func set(_ options: inout ReplicaOptions) {
        if let snapshotEvery {
            options.snapshotInterval = .microseconds(snapshotEvery.microseconds)
        }
        options.keptSnapshotCount = keepSnapshots
        options.keptHistorySnapshotCount = keepCommitsSince
        options.deletes = !noDelete
    }
}
