import ArgumentParser
import Coffer
import CofferReplica
import Foundation

/// `coffer replicas`
struct Replicas: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a remote has of a store: the owner, and what can be restored.",
        discussion: """
            Reads some hundred bytes of each record. Whether every page is there, only coffer \
            replica verify shows.

            EXAMPLES
              coffer replicas /mnt/backups/notes --passphrase-file secret
              coffer replicas https://s3.example/backups/notes --credentials-file s3 --all

            EXIT CODES
              0 shown; 10 there is no replica; 14 records are missing or changed; 27 the remote \
            cannot be reached, refuses, or is unfit. Nothing is changed in any case
            """)

    @OptionGroup var remote: RemoteArgument
    @Flag(help: "List each commit that can be restored, the oldest first.")
    var all = false
    @OptionGroup(title: "Secret of the store") var secret: SecretOptions
    @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        let (place, key) = try await remoteOptions.replica(at: remote.place, secret)
        let history = try await ReplicaHistory(of: place, key: try key.takeOne())
        try output.print(ReplicasResult(place.place, history, listsAll: all))
        if let damage = history.damage {
            throw StoreError(
                damage.code, damage.message,
                hint: "The commits before it are listed. Restore one of them if you need it, or "
                    + "the newest commit, which a later snapshot may have. Give the store a new "
                    + "remote.")
        }
    }
}

/// The report of `replicas`.
struct ReplicasResult: Report {
    struct Commit: Encodable {
        let position: String
        let time: Date
        let byteCount: Int
        let hasSnapshot: Bool

        init(_ commit: ReplicaHistory.Commit) {
            (position, time) = ("\(commit.position)", commit.date)
            (byteCount, hasSnapshot) = (commit.byteCount, commit.hasSnapshot)
        }

        fileprivate var text: String {
            "\(position) at \(time.formatted(.iso8601)), \(byteCount) bytes"
                + (hasSnapshot ? ", snapshot" : "")
        }
    }

    let remote: String
    let owner: String
    let isClosed: Bool
    let lastWrite: Date
    let isDamaged: Bool
    let commitCount: Int
    let snapshotCount: Int
    let oldest: Commit?
    let newest: Commit?
    /// `nil` unless all are listed.
    let commits: [Commit]?

    init(_ remote: String, _ history: ReplicaHistory, listsAll: Bool) {
        self.remote = remote
        (owner, isClosed) = (history.owner, history.isClosed)
        (lastWrite, isDamaged) = (history.lastWriteDate, history.damage != nil)
        commitCount = history.commits.count
        snapshotCount = history.commits.count(where: \.hasSnapshot)
        oldest = history.commits.first.map(Commit.init)
        newest = history.commits.last.map(Commit.init)
        commits = listsAll ? history.commits.map(Commit.init) : nil
    }

    var lines: [(label: String, value: String)] {
        [
            ("replica", remote),
            ("owner", isClosed ? "\(owner), which has stopped" : owner),
            ("written", "last at \(lastWrite.formatted(.iso8601))"),
            ("snapshots", "\(snapshotCount)"), ("commits", "\(commitCount)"),
        ]
            + (commits?.map { ("", $0.text) }
                ?? [("oldest", oldest?.text ?? "none"), ("newest", newest?.text ?? "none")])
    }
}
