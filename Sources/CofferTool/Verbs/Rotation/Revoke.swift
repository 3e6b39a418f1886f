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

            Several stores number their slots differently: name the slot with --slot by its label \
            or its fingerprint. Each store that has it gets another root key, in a run of its \
            own; the others are opened, so that nobody can hide the slot, and left alone. A slot \
            that coffer key remove took away is not found, and its credential may still open \
            copies: coffer rotate --root ends that.

            EXAMPLES
              coffer revoke notes.db 3
              coffer revoke notes.db 3 4 --key-file ops.key --keep 2=colleague.passphrase
              coffer revoke --list stores.txt --slot label:anna --report revoked.jsonl

            EXIT CODES
              0 the credentials have no access, even if the report or the metrics could not be \
            written; 3 some stores of a list are not done; 10 there is no such slot, or no store \
            of a list has it; 11 another program rotates the key, writes without a pause, or \
            writes to the report; 13 no slot would stay; 15 there is no keyring; 17 the report of \
            a list could not be written, and the message says how many stores are not done; 18 \
            the credentials have no access to what is written from now on, but a program that \
            reads keeps the old key in the main file, or the keyring does not have the new epoch: \
            coffer checkpoint finishes both; or the pages could not be checked again; 22 the file \
            of --prometheus or --failed-out has other content; 25 writes would wait for longer \
            than --pause-max, or a list or a report is not one; 130 interrupted: the root key is \
            the old one or the new one, or coffer status says that it is being replaced, which \
            the same command finishes. Any other: nothing was changed, unless the message says \
            otherwise
            """)

    @OptionGroup var stores: StoreListOptions
    @OptionGroup var taken: TakenSlotOptions
    @OptionGroup var kept: KeptSlotOptions
    @OptionGroup var pause: PauseOption
    @OptionGroup var record: RecordOptions
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws { _ = try taken.split(stores) }

    var isChanging: Bool { !record.dryRun }

    func run() async throws {
        let (stores, slots) = try taken.split(stores)
        var newRoot = RotationRun.NewRoot(dropped: slots, kept: kept)
        if !record.isGiven, let store = stores.single {
            return try await RotationRun(
                store: store, secret: secret, output: output, pause: pause, newRoot: newRoot,
                due: .always
            ).run()
        }
        newRoot.isRevocation = true
        try await RotationListRun(
            stores: stores, secret: secret, output: output, due: .always, record: record,
            pause: pause, newRoot: newRoot
        ).run()
    }
}
