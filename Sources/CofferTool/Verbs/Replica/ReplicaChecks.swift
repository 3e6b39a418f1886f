import ArgumentParser
import Coffer
import CofferReplica
import Foundation

/// `coffer replica`
struct ReplicaChecks: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replica",
        abstract: "Checks a remote and what it has, and deletes what is not kept.",
        subcommands: [Check.self, Verify.self, Purge.self])

    /// `coffer replica check`
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Checks whether a remote is fit for a replica.",
            discussion: """
                Creates some objects below proof/, lets several race for one name, reads them and \
                deletes them again. Warns of objects that are of no replica, and lists the slots \
                of the keyring that a replica has. A service that overwrites an object, although \
                it was asked to create it, is unfit: two machines would destroy each other's \
                records. No secret of a store is needed.

                EXAMPLES
                  coffer replica check /mnt/backups/notes
                  coffer replica check https://s3.example/backups/notes --credentials-file s3

                EXIT CODES
                  0 it is fit; 27 it is unfit, cannot be reached, or refuses: the message says why
                """)

        @OptionGroup var remote: RemoteArgument
        @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let remote: String
            let isFit: Bool
            let hasReplica: Bool
            let otherCount: Int
            /// Of the keyring of the replica; `nil` without one.
            let slots: [SlotReport]?

            var lines: [(label: String, value: String)] {
                [
                    ("remote", remote),
                    ("result", "fit: it creates each name once, and reads what was created"),
                    ("content", hasReplica ? "a replica" : "no replica"),
                ] + (slots ?? []).map { ("slot \($0.id)", $0.text) }
            }
        }

        /// The keyring of the replica. One that is lost or damaged does not make a remote unfit.
        private static func keyring(of place: any Remote) async throws -> Keyring? {
            do {
                return try await Keyring.replicated(to: place)
            } catch let error as StoreError where error.code == .notFound {
                return nil
            } catch let error as StoreError where error.code == .remoteDamaged {
                Terminal.warn(Failure(error).sentence)
                return nil
            }
        }

        func run() async throws {
            let place = try remoteOptions.remote(remote.place)
            let (names, keyring) = try await Signals.cancelling {
                try await place.prove()
                let names = try await place.names(withPrefix: "", after: "")
                return (names, try await Self.keyring(of: place))
            }
            let others = names.filter { !ReplicaHistory.isObject($0) }
            if let other = others.first {
                Terminal.warn(
                    "\(place.place) has other objects too, such as \(other): give the replica a "
                        + "folder or a prefix of its own")
            }
            try output.print(
                Result(
                    remote: place.place, isFit: true,
                    hasReplica: names.contains(where: ReplicaHistory.isObject),
                    otherCount: others.count, slots: keyring?.slots.map(SlotReport.init)))
        }
    }

    /// `coffer replica verify`
    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Restores a replica to a private folder, checks every page, and removes it.",
            discussion: """
                Does all that coffer restore does: each record must follow the one before, each \
                page must have its MAC, all together the digest that the owner has sealed, and \
                the structure must be sound. Then it looks whether every other record that is \
                kept is there, without its pages. It needs space for the store in TMPDIR, or \
                /tmp.

                EXAMPLES
                  coffer replica verify /mnt/backups/notes --passphrase-file secret
                  coffer replica verify /mnt/backups/notes --at-least 3/1a2b-0f3c5d7e8a9b0c1d

                EXIT CODES
                  0 the replica can be restored; 10 there is no replica, or none of that moment; \
                14 records or pages are missing or changed; 27 the remote cannot be reached, \
                refuses, or is unfit. Nothing is changed in any case
                """)

        @OptionGroup var remote: RemoteArgument
        @OptionGroup var moment: ReplicaMomentOptions
        @OptionGroup(title: "Secret of the store") var secret: SecretOptions
        @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        func run() async throws {
            let (place, key) = try await remoteOptions.replica(at: remote.place, secret)
            try moment.warn(of: secret)
            RunFiles.remedy("restore an earlier position with coffer restore --position")
            let folder = PrivateFolder()
            let moment = moment
            let report = try await output.copying("verify") { progress in
                defer { folder.remove() }
                let path = try folder.make() + "/copy.db"
                return try await Store.restore(
                    from: place, to: path, key: try key.takeOne(), at: moment.moment,
                    atLeast: moment.atLeast, configuration: Configuration(), looksAtAll: true,
                    progress: progress)
            }
            if let damage = report.damage { throw damage }
            try output.print(try ReplicaRestoreResult(place.place, report, path: nil))
        }
    }

    /// `coffer replica purge`
    struct Purge: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Deletes what a replica does not keep any more.",
            discussion: """
                coffer replicate does that by itself, unless it runs with --no-delete, as with \
                credentials that may not delete. Former keyrings are deleted at once, and what a \
                snapshot has left out a day later, by the clock of the remote. The replication \
                may go on meanwhile. coffer replicas lists what is kept, which stays as it is.

                EXAMPLES
                  coffer replica purge https://s3.example/backups/notes --credentials-file admin

                EXIT CODES
                  0 what was not kept is deleted; 10 there is no replica; 14 the record of a \
                snapshot is missing or changed; 27 the remote cannot be reached, or refuses. What \
                is kept is as it was in any case
                """)

        @OptionGroup var remote: RemoteArgument
        @OptionGroup(title: "Secret of the store") var secret: SecretOptions
        @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        var interruption: String { "what is kept is as it was: run the same command again" }

        struct Result: Report {
            let remote: String
            let deletedCount: Int

            var lines: [(label: String, value: String)] {
                [("replica", remote), ("deleted", deletedCount.counted("object"))]
            }
        }

        func run() async throws {
            let (place, key) = try await remoteOptions.replica(at: remote.place, secret)
            let count = try await Signals.cancelling {
                Signals.workBegins()
                return try await place.purge(key: try key.takeOne())
            }
            output.printDone(Result(remote: place.place, deletedCount: count))
        }
    }
}
