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
            root key, a root backup or a credential: coffer revoke does, or --root with --drop. It \
            replaces the root key as well. The slots of recipients and the slot that opens the \
            store stay by themselves; each other slot is kept by its secret, or dropped. Programs \
            that are open by a slot that stays go on. What somebody has copied stays readable for \
            them: the file and the keyring of before. Make a new root backup and a new backup \
            afterwards. A rotation that --root has begun and not ended is finished by coffer \
            rotate.

            Several stores, or a --list of them, are rotated one after the other, each in a run of \
            its own; --older-than leaves out those that are not due, so that a repeated command \
            finishes what is left to do.

            EXAMPLES
              coffer rotate notes.db --key-file ops.key
              coffer rotate notes.db --identity-file cron.identity --pause-max 300 --json
              coffer rotate notes.db --root --drop 3 --keep 2=ops.key
              coffer rotate stores/*.db --older-than 90d --dry-run
              coffer rotate --list stores.txt --older-than 90d --report rotations.jsonl

            EXIT CODES
              0 the store has the new key, even if the report or the metrics could not be written, \
            or its key is not due; 3 some stores of a list are not done; 10 there is no slot of a \
            number; 11 another program rotates the key, writes without a pause, or writes to the \
            report; 13 no slot would stay; 15 there is no keyring; 17 the report of a list could \
            not be written, and the message says how many stores are not rotated; 18 the store \
            has the new key, but a program that reads keeps the old one in the main file, or the \
            keyring does not have the new epoch: coffer checkpoint finishes both; or the pages \
            could not be checked again; 22 the file of --prometheus or --failed-out has other \
            content; 25 writes would wait for longer than --pause-max, or a list or a report is \
            not one; 130 interrupted: the key is the old one or the new one, and every credential \
            opens the store. Any other: nothing was changed, unless the message says otherwise
            """)

    @OptionGroup var stores: StoreListOptions
    @OptionGroup var due: DueOptions
    @OptionGroup var pause: PauseOption
    @Flag(help: "Replace the root key too.")
    var root = false
    @Option(
        help: ArgumentHelp(
            "With --root: leave a slot out, by \(SlotName.help). May be given several times.",
            valueName: "slot"), transform: SlotName.parse)
    var drop: [SlotName] = []
    @OptionGroup var kept: KeptSlotOptions
    @OptionGroup var record: RecordOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        guard root || (drop.isEmpty && !kept.isNamed) else {
            throw ValidationError("--drop and --keep… need --root.")
        }
        guard root || due.rootOlderThan == nil else {
            throw ValidationError("--root-older-than needs --root.")
        }
        guard root || due.fromRoot == nil else {
            throw ValidationError("--from-root needs --root.")
        }
        guard single != nil || !due.isRepeated else {
            throw ValidationError("--from-epoch and --from-root are for one store.")
        }
    }

    /// `nil` if there is a list of stores, or a record to keep.
    private var single: StoreOptions? { record.isGiven ? nil : stores.single }

    var isChanging: Bool { !record.dryRun }

    func run() async throws {
        guard let store = single else {
            return try await RotationListRun(
                stores: stores, secret: secret, output: output, due: due, record: record,
                pause: pause, newRoot: newRoot
            ).run()
        }
        try await RotationRun(
            store: store, secret: secret, output: output, pause: pause,
            newRoot: newRoot, due: due
        ).run()
    }

    private var newRoot: RotationRun.NewRoot? {
        root ? RotationRun.NewRoot(dropped: drop, kept: kept) : nil
    }
}
