import Logging
import Metrics

/// The reports of a replica to the log and the metrics of its store: `Configuration.logger` and
/// `Configuration.metricsLabel` have the tables.
package struct ReplicaReports: Sendable {
    private let logger: Logger?
    private let sentByteCount: Counter
    private let failureCount: Counter
    private let pass: Timer
    private let age: Gauge

    fileprivate init(_ logger: Logger?, path: String, remote: String, store: String) {
        var logger = logger
        logger?[metadataKey: "path"] = "\(path)"
        logger?[metadataKey: "remote"] = "\(remote)"
        self.logger = logger
        let store = store.isEmpty ? [] : [("store", store)]
        sentByteCount = Counter(label: "coffer.replica.sent", dimensions: store)
        failureCount = Counter(label: "coffer.replica.failures", dimensions: store)
        pass = Timer(label: "coffer.replica.pass", dimensions: store)
        age = Gauge(label: "coffer.replica.age", dimensions: store)
    }

    package func began(at position: String) {
        logger?.notice("replica begins", metadata: ["position": "\(position)"])
    }

    /// Reports a record that the remote has.
    package func sent(byteCount: Int) { sentByteCount.increment(by: byteCount) }

    /// Reports a pass after which the remote has everything that was committed before.
    package func passed(in duration: Duration) {
        pass.recordNanoseconds(duration.nanoseconds)
        age.record(0)
    }

    /// Reports a failure.
    ///
    /// - Parameters:
    ///   - seconds: How long ago the remote last had everything; `nil` if it never had.
    ///   - isNew: Whether it was not logged before.
    package func failed(_ error: any Error, seconds: Double?, isNew: Bool) {
        failureCount.increment()
        if let seconds { age.record(seconds) }
        guard isNew else { return }
        var facts: Logger.Metadata = [:]
        if let code = (error as? StoreError)?.code { facts["code"] = "\(code)" }
        if let seconds { facts["age"] = "\(Duration.seconds(seconds.rounded()))" }
        logger?.warning("replica cannot be brought up to date", metadata: facts)
    }

    /// Reports a snapshot that failed; commits are sent all the same.
    package func snapshotFailed(_ error: any Error) {
        failureCount.increment()
        let code = (error as? StoreError).map { "\($0.code)" } ?? "\(type(of: error))"
        logger?.warning("replica has no new snapshot", metadata: ["code": "\(code)"])
    }

    package func recovered() {
        logger?.notice("replica has everything again")
    }

    /// Reports that the replication has ended by itself.
    package func ended(_ error: StoreError) {
        logger?.error("replica has ended", metadata: ["code": "\(error.code)"])
    }

    package func closed() {
        logger?.debug("replica closed")
    }
}

extension Store {
    /// Where a replica reports.
    ///
    /// - Parameter remote: The place of the remote.
    package func replicaReports(remote: String) -> ReplicaReports {
        let pool = core.pool
        let path = pool.file?.location.path ?? ""
        let name = path.split(separator: "/").last.map(String.init) ?? ""
        return ReplicaReports(
            pool.configuration.logger, path: path, remote: remote,
            store: pool.configuration.metricsLabel ?? name)
    }
}
