import Coffer
import CofferReplica
import Foundation

extension Restore {
    /// Makes a new store of what a remote has.
    func restoreReplica() async throws {
        try NewFile.requireFree(forStore: store.path)
        try NewFile.requireFolder(store.path)
        let (place, key) = try await remoteOptions.replica(at: backup, secret)
        try moment.warn(of: secret)
        RunFiles.makes(store.path)
        RunFiles.remedy("restore an earlier position with --position")
        Signals.willChange(Interruption.ofCopy(store.path))
        let report = try await output.copying("restore") { [store, moment] progress in
            Signals.workBegins()
            return try await Store.restore(
                from: place, to: store.path, key: try key.takeOne(), at: moment.moment,
                atLeast: moment.atLeast, configuration: store.configuration, progress: progress)
        }
        if let damage = report.damage {
            Terminal.warn(
                "the store is whole, but its replica is not: \(Failure(damage).message); replicate "
                    + "it to a new remote")
        }
        if report.isFromBeforeRotation {
            Terminal.warn(
                "the restored commit is from before a rotation: the store has the earlier key "
                    + "again, and coffer rotate \(ShellWord.of(store.path)) ends its use")
        }
        output.printDone(try ReplicaRestoreResult(place.place, report, path: store.path))
    }
}

/// The report of `restore` and `replica verify` about a replica.
struct ReplicaRestoreResult: Report {
    let remote: String
    /// The restored store; `nil` if it was removed again.
    let path: ReportedPath?
    /// `nil` without a keyring, and if the store was removed again.
    let keyring: ReportedPath?
    let position: String
    let time: Date
    let profile: String?
    let tableCount: Int
    let rowCount: Int
    let pageCount: Int
    /// The damage of the replica that the restore did without; `nil` if none was found.
    let damage: String?

    init(_ remote: String, _ report: ReplicaRestoreReport, path: String?) throws {
        self.remote = remote
        self.path = path.map { ReportedPath($0) }
        let hasKeyring = try path.map { try Keyring.exists(for: $0) } ?? false
        keyring = hasKeyring ? path.map { ReportedPath($0 + Keyring.fileSuffix) } : nil
        (position, time) = ("\(report.position)", report.time)
        profile = report.copy.profile?.description
        tableCount = report.copy.tableCount
        rowCount = report.copy.rowCount
        pageCount = report.copy.pageCount
        damage = report.damage.map { Failure($0).message }
    }

    var lines: [(label: String, value: String)] {
        var lines = [(label: "replica", value: "\(remote), kept as it is")]
        if let path { lines.append(("store", "\(path), restored")) }
        if let keyring {
            lines.append(("keyring", "\(keyring), with the credentials of the newest commit"))
        }
        lines.append(("position", "\(position), sent at \(time.formatted(.iso8601))"))
        lines.append(("profile", profile ?? "none"))
        lines.append(("content", CopyResult.content(tableCount, rowCount, pageCount)))
        let proof =
            "every record that it needs is there, each page authenticated, the structure checked"
        lines.append(("proof", proof))
        return lines
    }
}
