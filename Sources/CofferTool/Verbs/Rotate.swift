import ArgumentParser
import Coffer

/// `coffer rotate`
struct Rotate: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Gives every page a new key, from the root of the store's keyring.",
        discussion: """
            Programs that opened the store by its keyring go on: in WAL their reads too, while \
            their writes wait. Every page is authenticated before and after, and success is \
            reported only after a new connection has opened the store with the new key and failed \
            with the old one. A rotation that is killed leaves one of both keys, and every \
            credential opens both. The write-ahead log needs as much room as the file.

            A rotation ends the use of one AES key. It takes access from nobody who ever had the \
            root key, a root backup or a credential: --root does, together with --drop. It \
            replaces the root key as well. The slots of recipients and the slot that opens the \
            store stay by themselves; each other slot is kept by its secret, or dropped. Programs \
            that are open by a slot that stays go on. What somebody has copied stays readable for \
            them: the file and the keyring of before. Make a new root backup and a new backup \
            afterwards. A rotation that --root has begun and not ended is finished by coffer \
            rotate.

            EXAMPLES
              coffer rotate notes.db --key-file ops.key
              coffer rotate notes.db --identity-file cron.identity --pause-max 300 --json
              coffer rotate notes.db --root --drop 3 --keep 2=ops.key

            EXIT CODES
              0 the store has the new key, even if the report could not be written; 10 there is no \
            slot of a number; 11 another program rotates the key, or writes without a pause; 13 no \
            slot would stay; 15 there is no keyring; 18 the store has the new key, but a program \
            that reads keeps the old one in the main file, or the keyring does not have the new \
            epoch: coffer checkpoint finishes both; or the pages could not be checked again; 25 \
            writes would wait for longer than --pause-max; 130 interrupted: the key is the old one \
            or the new one, and every credential opens the store. Any other: nothing was changed, \
            unless the message says otherwise
            """)

    @OptionGroup var store: StoreOptions
    @Option(
        help: ArgumentHelp(
            "The longest time that writes may wait, by estimate: 30 without this option, and at "
                + "most 86400.", valueName: "seconds"))
    var pauseMax: Double?
    @Flag(help: "Replace the root key too.")
    var root = false
    @Option(
        help: ArgumentHelp(
            "With --root: leave out the slot of this number. May be given several times.",
            valueName: "slot"))
    var drop: [UInt16] = []
    @OptionGroup var kept: KeptSlotOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        if let pauseMax, !(pauseMax > 0 && pauseMax <= 86_400) {
            throw ValidationError("--pause-max must be above 0 and at most 86400 seconds.")
        }
        guard root || (drop.isEmpty && !kept.isNamed) else {
            throw ValidationError("--drop and --keep… need --root.")
        }
    }

    struct Result: Report {
        let path: ReportedPath
        let oldEpoch: Int
        let epoch: Int
        let oldKeyID: String
        let keyID: String
        let oldRootID: String
        let rootID: String
        let pageCount: Int
        let oldPageCount: Int
        let isWholeFile: Bool
        let isRecorded: Bool
        /// Whether every page was authenticated again after the change.
        let isVerified: Bool
        /// How long writes waited.
        let pause: Double
        let seconds: Double
        let proof: String
        let engine: String

        init(_ path: String, _ report: RotationReport) {
            self.path = ReportedPath(path)
            oldEpoch = report.oldEpoch
            epoch = report.epoch
            oldKeyID = report.oldKeyID.description
            keyID = report.keyID.description
            oldRootID = report.oldRootID
            rootID = report.rootID
            pageCount = report.pageCount
            oldPageCount = report.oldPageCount
            isWholeFile = report.isWholeFile
            isRecorded = report.isRecorded
            isVerified = report.verificationFailure == nil
            proof =
                "a new connection opens with the new key and fails with the old one; every page "
                + (isVerified ? "is authentic" : "was authentic before")
            pause = Self.seconds(report.pause)
            seconds = Self.seconds(report.duration)
            engine = (try? Engine.capabilities)?.names ?? "unknown"
        }

        private static func seconds(_ duration: Duration) -> Double {
            (duration / .seconds(1) * 100).rounded() / 100
        }

        var lines: [(label: String, value: String)] {
            [
                ("store", "\(path)"), ("pages", "\(pageCount) under the new key"),
                ("epoch", "\(epoch), after \(oldEpoch)"),
                ("key id", "\(keyID), after \(oldKeyID)"),
                ("root id", rootID == oldRootID ? rootID : "\(rootID), after \(oldRootID)"),
                (
                    "main file",
                    isWholeFile
                        ? "all of it under the new key"
                        : "\(oldPageCount) of \(pageCount) pages still have an earlier key"
                ),
                ("keyring", isRecorded ? "has the new epoch" : "has the old epoch"),
                ("proof", proof), ("pause", "\(pause) s"), ("time", "\(seconds) s"),
            ]
        }
    }

    func run() async throws {
        let report = try await store.withKeyring(secret) { opened in
            try await rotate(opened)
        }
        output.printDone(Result(store.path, report))
        if let failure = report.recordFailure {
            Terminal.warn(
                "the keyring does not have the new epoch yet: \(failure.message); coffer "
                    + "checkpoint records it")
        }
        if let failure = report.verificationFailure {
            Terminal.warn(
                "the key was rotated, and its pages were not checked again: \(failure.message); "
                    + "coffer verify does it")
        }
        if !report.isWholeFile {
            let reason = report.checkpointFailure.map(\.message) ?? "another program is reading"
            Terminal.warn(
                "the main file without its WAL still has the old key: \(reason); run coffer "
                    + "checkpoint when the cause is gone")
        }
        output.note(
            report.isNewRoot
                ? "copies of the file and its keyring from before open as before, and root backups "
                    + "of before do not open this one: make new ones"
                : "a rotation takes access from nobody who had the root key, a root backup or a "
                    + "credential: coffer rotate --root does")
        if !report.isFinished { throw ExitCode(ExitStatus.unfinished.rawValue) }
    }

    private func rotate(_ opened: Store) async throws -> RotationReport {
        let maximumPause = pauseMax.map { Duration.seconds($0) }
        let reporters = RotationProgress.Phase.allCases.map { phase in
            (phase, output.reporter(Self.name(of: phase), unit: "bytes"))
        }
        return try await Signals.cancelling {
            defer { for (_, reporter) in reporters { reporter.finish() } }
            @Sendable func show(_ progress: RotationProgress) {
                for (phase, reporter) in reporters where phase == progress.phase {
                    guard progress.byteCountTotal > 0 else { continue }
                    reporter.update(progress.byteCount, of: progress.byteCountTotal)
                }
            }
            guard root else {
                return try await opened.rotate(maximumPause: maximumPause, progress: show)
            }
            let own = try opened.keys.ownSlotID
            return try await opened.replaceRootKey(
                dropping: drop, maximumPause: maximumPause,
                keeping: { [kept, drop, path = store.path] plan in
                    try kept.keep(in: &plan, dropping: drop, own: own, for: path)
                }, progress: show)
        }
    }

    private static func name(of phase: RotationProgress.Phase) -> String {
        switch phase {
        case .verifying: "rotate: check"
        case .rotating: "rotate"
        case .movingWAL: "rotate: move the WAL"
        case .verifyingAgain: "rotate: check again"
        }
    }
}
