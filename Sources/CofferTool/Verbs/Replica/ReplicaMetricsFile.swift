import CofferReplica
import Foundation

/// The file that `--prometheus` of `replicate` names: whether a replica is up to date.
struct ReplicaMetricsFile: Sendable {
    /// The values in the file.
    struct Values: Sendable, Equatable {
        /// Whether the last try to send commits succeeded.
        var isOK: Bool
        /// When the remote last had everything; `nil` if this run does not know.
        var sentDate: Date?
        /// Whether the last snapshot succeeded; `nil` if this run has not tried to make one.
        var isSnapshotOK: Bool?
        /// When this run last made a snapshot; `nil` if it has made none.
        var snapshotDate: Date?

        /// Whether the values differ in more than the time of the last pass.
        func isNews(after former: Values) -> Bool {
            var former = former
            if former.sentDate != nil, sentDate != nil { former.sentDate = sentDate }
            return self != former
        }
    }

    private let file: ReplacedFile
    private let labels: String
    /// The values of an earlier run. They stay for those that this run does not know.
    let former: Values?
    private static let first = "coffer_replica_run_timestamp_seconds"

    /// - Throws: As `ReplacedFile`.
    init(_ path: String, store: String, remote: String) throws {
        file = try ReplacedFile(path, beginning: "# HELP \(Self.first) ")
        let store = PrometheusText.escaped(ReportedPath(store).absolute)
        labels = "path=\"\(store)\",remote=\"\(PrometheusText.escaped(remote))\""
        former = Self.values(in: path, labels)
    }

    /// - Throws: As `ReplacedFile.write`.
    func write(_ values: Values) throws { try file.write(text(values, now: .now)) }

    func text(_ values: Values, now: Date) -> String {
        func number(_ date: Date?) -> Int? { date.map { Int($0.timeIntervalSince1970) } }
        let isSnapshotOK = values.isSnapshotOK ?? former?.isSnapshotOK
        let metrics: [(name: String, help: String, value: Int?)] = [
            (Self.first, "When coffer replicate last wrote this file.", number(now)),
            (
                Self.ok, "1 if commits are sent, 0 if the last try failed.",
                values.isOK ? 1 : 0
            ),
            (
                Self.sent, "When the remote last had everything that was committed.",
                number(values.sentDate ?? former?.sentDate)
            ),
            (
                Self.snapshotOK, "0 if the last snapshot failed.", isSnapshotOK.map { $0 ? 1 : 0 }
            ),
            (
                Self.snapshot, "When a run last made a snapshot.",
                number(values.snapshotDate ?? former?.snapshotDate)
            ),
        ]
        return metrics.reduce(into: "") { text, metric in
            guard let value = metric.value else { return }
            text += PrometheusText.head(metric.name, metric.help)
            text += "\(metric.name){\(labels)} \(value)\n"
        }
    }

    private static let ok = "coffer_replica_ok"
    private static let sent = "coffer_replica_sent_timestamp_seconds"
    private static let snapshotOK = "coffer_replica_snapshot_ok"
    private static let snapshot = "coffer_replica_snapshot_timestamp_seconds"

    /// The values in the file of an earlier run; `nil` if there is none.
    private static func values(in path: String, _ labels: String) -> Values? {
        guard let text = try? String(contentsOf: URL(filePath: path), encoding: .utf8) else {
            return nil
        }
        func number(_ name: String) -> Int? {
            let start = "\(name){\(labels)} "
            return text.split(separator: "\n").first { $0.hasPrefix(start) }
                .flatMap { Int($0.dropFirst(start.count)) }
        }
        func date(_ name: String) -> Date? {
            number(name).map { Date(timeIntervalSince1970: Double($0)) }
        }
        return Values(
            isOK: number(ok) == 1, sentDate: date(sent),
            isSnapshotOK: number(snapshotOK).map { $0 == 1 },
            snapshotDate: date(snapshot))
    }
}

extension ReplicaMetricsFile.Values {
    init(_ status: ReplicaStatus) {
        // A run that has made no snapshot says nothing of the last one.
        let isSnapshotOK: Bool? = status.snapshotDate == nil ? nil : true
        self.init(
            isOK: status.failure == nil && status.end == nil, sentDate: status.sentDate,
            isSnapshotOK: status.snapshotFailure == nil ? isSnapshotOK : false,
            snapshotDate: status.snapshotDate)
    }
}
