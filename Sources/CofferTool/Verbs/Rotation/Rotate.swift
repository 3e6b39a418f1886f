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
    @OptionGroup var pause: PauseOption
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
        guard root || (drop.isEmpty && !kept.isNamed) else {
            throw ValidationError("--drop and --keep… need --root.")
        }
    }

    func run() async throws {
        try await RotationRun(
            store: store, secret: secret, output: output, pause: pause,
            newRoot: root ? RotationRun.NewRoot(dropped: drop, kept: kept) : nil
        ).run()
    }
}
