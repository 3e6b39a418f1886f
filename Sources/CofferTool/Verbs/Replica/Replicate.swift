import ArgumentParser
import Coffer
import CofferReplica
import Foundation
import Synchronization

/// `coffer replicate`
struct Replicate: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Copies a store to a remote continuously, and encrypted.",
        discussion: """
            Runs until Ctrl-C or SIGTERM, beside the programs that use the store, whatever they \
            are written in. What was committed is in the remote after --interval at the latest. \
            The store is only read. The remote sees sizes, times and encrypted pages, and the \
            labels of a keyring. Restore the replica with coffer restore, to the newest commit or \
            to an earlier one.

            Once a day a snapshot of all pages is made, from which a restore begins; only parts \
            that have changed are sent. Every commit since the seventh newest snapshot is kept, \
            and 30 snapshots. What a snapshot leaves out can be restored no longer, and is deleted \
            after a day with the next snapshot. Give each run the same options: a larger number \
            later brings nothing back. If a snapshot fails, commits are sent all the same.

            Give each store a remote of its own: a folder, or a prefix in a bucket. It is proven \
            first: it must refuse to create an object twice. One owner writes to it. After a crash \
            the next run waits for three of the former intervals and ten seconds. A run of another \
            owner, such as on another machine, is refused unless --take-over-from names the former \
            one: coffer replicas shows it.

            The keyring of a store goes to the remote too. Each of its credentials restores every \
            commit, also of the time before a rotation; one that was removed restores until the \
            next run or interval. After a new root, or another key of a store without a keyring, \
            name a new remote.

            STORE-tags-… next to the store has 16 bytes for each page. Without it, the first run \
            after a crash sends all pages. A remote that is away at the start ends the run after a \
            minute. Once pages are sent the run waits for an hour, and later as long as it takes; \
            a first transfer that breaks off goes on with the next run. With --json each event is \
            a line: waiting, ready, sent, snapshot, failed, recovered, stopped. A supervisor that \
            sets NOTIFY_SOCKET is told when it is ready, and asked for time until then; its \
            SIGHUP, as of systemctl reload, sends at once what was committed. What was not sent \
            within a minute of the stop is sent by the next run.

            EXAMPLES
              coffer replicate notes.db /mnt/backups/notes --passphrase-file secret
              coffer replicate notes.db https://s3.example/backups/notes \\
                  --credentials-file s3 --raw-key-file key --interval 10s
              coffer replicate notes.db /mnt/backups/notes --once

            EXIT CODES
              0 the remote has everything that was committed before the end; 12 wrong key, or the \
            store has another key or root than its replica; 27 the remote cannot \
            be reached, refuses, or is unfit; 28 another owner replicates to it, or has taken \
            over; 29 the remote has another store's replica, or later commits than the store; 18 \
            stopped before everything was sent; 130 a second signal ended it at once. The next run \
            sends the rest. The store is as it was in any case
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var remote: RemoteArgument

    @Option(
        help: ArgumentHelp(
            "The longest time that a commit waits, such as 1s or 5m: 1m without this option. "
                + "After a commit 16 bytes of each page are read.", valueName: "time"),
        transform: TimeSpan.init)
    var interval: TimeSpan?

    @Flag(
        help: ArgumentHelp(
            "Send what was committed, and end. If nothing was since the last run, nothing is "
                + "written, or once a day."))
    var once = false

    @Option(
        help: ArgumentHelp(
            "The name of this owner; the default is the name of the machine and the path. Set it "
                + "where that changes, as in a container; a clone of a machine needs another one.",
            valueName: "name"))
    var owner: String?

    @Option(
        help: ArgumentHelp(
            "Take over from the owner of this name, which can replicate no longer then. With the "
                + "own name, a run after a crash does not wait.",
            valueName: "name"))
    var takeOverFrom: String?

    @Option(
        help: ArgumentHelp(
            "Go on from the store as it is, although the remote has later commits: at the position "
                + "that the error names. They can still be restored.", valueName: "position"),
        transform: ReplicaMomentOptions.position)
    var keepFileAt: ReplicaPosition?

    @Option(
        help: ArgumentHelp(
            "Write whether the replica is up to date to a file for the textfile collector of "
                + "Prometheus: at each change, and every 15 seconds.", valueName: "path"),
        completion: .file())
    var prometheus: String?

    @OptionGroup(title: "Retention") var retention: RetentionOptions
    @OptionGroup(title: "Secret of the store") var secret: SecretOptions
    @OptionGroup(title: "Storage service") var remoteOptions: RemoteOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    var interruption: String {
        "the remote has what was sent: run the same command again to send the rest"
    }

    func validate() throws {
        guard interval?.microseconds ?? .max >= 1_000_000 else {
            throw ValidationError("The shortest interval is 1s.")
        }
        guard owner != "" else { throw ValidationError("The name of the owner is empty.") }
        if let prometheus { try SecretFile.requirePath(prometheus) }
    }

    func run() async throws {
        // A folder may be absent, which the file of --prometheus tells.
        let isService = RemoteOptions.isService(remote.place)
        let service = isService ? try remoteOptions.remote(remote.place) : nil
        let name = service?.place ?? remote.place
        let file = try prometheus.map {
            try ReplicaMetricsFile($0, store: store.path, remote: name)
        }
        let metrics = file.map { file in
            ReplicaMetrics(file) { error in
                Terminal.warn("the replica goes on, but \(Failure(error).sentence)")
            }
        }
        let events = ReplicateEvents(store.path, name, output, isService: !once, metrics)
        let ticking = once ? nil : metrics.map { metrics in Task { await metrics.tick() } }
        defer { ticking?.cancel() }
        do {
            _ = try secret.source()
            let place = try service ?? remoteOptions.remote(remote.place)
            let end = try await store.withStore(secret, mode: .readOnly, hardLinks: .told) {
                opened in
                try await run(opened, place, events)
            }
            if once || !output.json { output.printDone(end) }
        } catch {
            events.ended(by: error)
            throw error
        }
    }

    private func run(
        _ opened: Store, _ place: any Remote, _ events: ReplicateEvents
    ) async throws -> ReplicateEvent {
        var options = ReplicaOptions()
        options.owner = owner
        options.takesOverFrom = takeOverFrom
        options.keepsFileAt = keepFileAt
        retention.set(&options)
        options.failed = { events.failed($0) }
        options.waiting = { events.waits($0) }
        if let interval { options.interval = .microseconds(interval.microseconds) }
        let transfer = output.reporter("replicate", unit: "bytes")
        options.progress = { progress in
            events.progresses()
            // A bar for less than a record would only flicker.
            guard progress.byteCountTotal > ReplicaProgress.step else { return }
            events.lines.add("progress") {
                transfer.update(progress.sentByteCount, of: progress.byteCountTotal)
                if progress.sentByteCount >= progress.byteCountTotal { transfer.finish() }
            }
        }
        defer { events.finish() }
        return try await serve(opened, place, options, transfer, events)
    }

    /// Replicates until a signal, or until an error ends it.
    private func serve(
        _ opened: Store, _ place: any Remote, _ options: ReplicaOptions,
        _ transfer: ProgressReporter, _ events: ReplicateEvents
    ) async throws -> ReplicateEvent {
        // The replica while it can be asked to send.
        let begun = Mutex<Replica?>(nil)
        // Before and after that a request of a supervisor has nothing to do.
        let sendNow: @Sendable () -> Void = {
            guard let replica = begun.withLock(\.self) else { return }
            Task { await events.sendNow(replica) }
        }
        let isSupervised = !once && Supervisor.isThere
        return try await Signals.serving(takingHangups: isSupervised ? sendNow : nil) {
            [once] in
            Signals.workBegins()
            if once, let position = try await opened.unchangedPosition(in: place, options) {
                return events.unchanged(at: position)
            }
            let replica = try await Supervisor.waiting {
                defer { transfer.finish() }
                return try await Self.begin(opened, place, options)
            }
            // A supervisor may ask at once when it is told.
            begun.withLock { $0 = replica }
            await events.isReady(replica)
            if once {
                // Everything is sent. A snapshot that fails is told, and made by the next run that
                // writes.
                _ = try? await replica.maintain()
            } else {
                try await Self.follow(replica, events, options.interval)
            }
            begun.withLock { $0 = nil }
            Supervisor.notify("STOPPING=1")
            try await Self.close(replica)
            return try await events.stopped(replica)
        }
    }

    private static func begin(
        _ opened: Store, _ place: any Remote, _ options: ReplicaOptions
    ) async throws -> Replica {
        do {
            return try await opened.replicate(to: place, options)
        } catch is CancellationError {
            // Some records may be in the remote, and another owner may have been ended.
            throw unfinished()
        }
    }

    /// Tells what happens, until the task is cancelled.
    ///
    /// - Throws: Why the replication ended by itself.
    private static func follow(
        _ replica: Replica, _ events: ReplicateEvents, _ interval: Duration
    ) async throws {
        while !Task.isCancelled {
            try? await Task.sleep(for: min(interval, .seconds(1)))
            if let end = try await events.look(at: replica) { throw end }
        }
    }

    private static let closingTime = Duration.seconds(60)

    /// Closes the replica, also in a task that was cancelled.
    private static func close(_ replica: Replica) async throws {
        let closing = Task { try await replica.close() }
        let patience = Task {
            try await Task.sleep(for: closingTime)
            closing.cancel()
        }
        defer { patience.cancel() }
        do {
            try await closing.value
        } catch is CancellationError {
            let reason = await replica.status.failure.map { ": \(Failure($0.error).message)" } ?? ""
            throw unfinished(reason)
        }
    }

    private static func unfinished(_ reason: String = "") -> ToolError {
        ToolError(
            .unfinished, "stopped before everything was sent\(reason)",
            hint: "Nothing is lost. The next run sends the rest.")
    }
}
