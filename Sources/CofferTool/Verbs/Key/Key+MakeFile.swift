import ArgumentParser
import Coffer

extension Key {
    /// `coffer key make-file`
    struct MakeFile: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Makes a key file: 32 random bytes as 64 hex digits.",
            discussion: """
                Only its owner may read it, and an existing file is never overwritten. It opens \
                nothing until key add or init gives it a slot.

                EXIT CODES
                  0 the file exists, even if the report could not be written; 22 a file has that \
                name already. Any other: this run made none
                """)

        @Argument(help: "The new file.", completion: .file())
        var path: String
        @OptionGroup(title: "Output") var output: OutputOptions

        func validate() throws { try SecretFile.requirePath(path) }

        func run() async throws {
            Signals.workBegins()
            try RawKeyText.withRandomDigits { digits in
                try SecretFile.write(digits, to: path)
            }
            output.printDone(KeyGen.Result(path: ReportedPath(path)))
        }
    }

    /// `coffer key make-identity`
    struct MakeIdentity: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Makes the identity of a person or service, and prints its public key.",
            discussion: """
                The identity is a private key, in a new file that only its owner may read. The \
                public key is one line on standard output. Who may change the keyring of a store \
                adds it with key add --recipient, and needs nothing secret of the recipient.

                EXIT CODES
                  0 the file exists, even if the public key could not be written; 22 a file has \
                that name already. Any other: this run made none
                """)

        @Argument(help: "The new file.", completion: .file())
        var path: String
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Encodable {
            let path: ReportedPath
            let recipient: String
        }

        func validate() throws { try SecretFile.requirePath(path) }

        func run() async throws {
            Signals.workBegins()
            let identity = KeyCredential.newIdentity()
            let recipient = try identity.recipientText()
            try identity.withLetters { letters in try PaperLetters.write(letters, to: path) }
            var standardOutput = StandardOutput()
            do {
                let result = Result(path: ReportedPath(path), recipient: recipient)
                try standardOutput.writeLine(output.json ? JSON.object(result) : recipient)
                try standardOutput.flush()
            } catch {
                Terminal.warn(
                    "this was done, but its report is lost: \(Failure(error).message); the public "
                        + "key is \(recipient)")
            }
        }
    }
}
