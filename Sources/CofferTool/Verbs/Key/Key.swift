import ArgumentParser
import Coffer

/// `coffer key`
struct Key: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Looks after the keyring of a store: the credentials that open it.",
        discussion: """
            A keyring is the file STORE.keyring. It has one slot for each credential: a \
            passphrase, a key file, a recovery key on paper, the public key of a person or \
            service, or a secret that a service such as a KMS has wrapped. Changing a slot takes \
            milliseconds, whatever the size of the store. Without the keyring no credential opens \
            the store: keep copies of it.

            EXAMPLES
              coffer init notes.db --keyring
              coffer key enable old.db
              coffer key list notes.db
              coffer key add notes.db --label ops
              coffer key change notes.db 2
              coffer key remove notes.db 2
              coffer key make-identity billing.identity > billing.recipient
              coffer key add notes.db --label billing --recipient billing.recipient
              coffer sql notes.db --identity-file billing.identity
              coffer key add notes.db --label kms --wrap-command 'kms encrypt'
              coffer sql notes.db --unwrap-command 'kms decrypt'
              coffer key backup notes.db notes.keyring.bak
            """,
        subcommands: [
            Add.self, Change.self, Rename.self, Remove.self, ListSlots.self, Test.self,
            Enable.self, MakeFile.self, MakeIdentity.self, BackUp.self, PutBack.self, Rebuild.self,
            ExportRoot.self,
        ])
}
