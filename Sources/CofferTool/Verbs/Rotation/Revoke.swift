import ArgumentParser
import Coffer

/// `coffer revoke`
struct Revoke: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Takes the access of credentials away, by a new root key.",
        discussion: """
            Somebody left, or a laptop is lost. The slots are left out, the store gets another \
            root key, and every page a key from it, as coffer rotate --root --drop does. The \
            credential opens the store no longer, not even with a copy of the keyring from \
            before, and neither does a root backup.

            It takes back nothing that was copied: the file and the keyring of before open as \
            before. The slots of recipients and the slot that opens the store stay by \
            themselves; each other slot is kept by its secret, or revoked too. Programs that are \
            open by a slot that stays go on; those of a revoked one end. Make a new root backup \
            and a new backup afterwards. What was interrupted is finished by coffer rotate.

            EXAMPLES
              coffer revoke notes.db 3
              coffer revoke notes.db 3 4 --key-file ops.key --keep 2=colleague.passphrase

            EXIT CODES
              0 the credentials have no access, even if the report could not be written; 10 there \
            is no slot of a number; 11 another program rotates the key, or writes without a \
            pause; 13 no slot would stay; 15 there is no keyring; 18 the credentials have no \
            access to what is written from now on, but a program that reads keeps the old key \
            in the main file, or the keyring does not have the new epoch: coffer checkpoint \
            finishes both; or the pages could not be checked again; 25 writes would wait for \
            longer than --pause-max; 130 interrupted: the root key is the old one or the new \
            one, or coffer status says that it is being replaced, which the same command \
            finishes. Any other: nothing was changed, unless the message says otherwise
            """)

    @OptionGroup var store: StoreOptions
    @Argument(help: "The numbers of the slots that lose their access.")
    var slots: [UInt16]
    @OptionGroup var kept: KeptSlotOptions
    @OptionGroup var pause: PauseOption
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        try await RotationRun(
            store: store, secret: secret, output: output, pause: pause,
            newRoot: RotationRun.NewRoot(dropped: slots, kept: kept), due: .always
        ).run()
    }
}
