import ArgumentParser
import Coffer

extension Key {
    /// `coffer key make-identity`
    struct MakeIdentity: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Makes the identity of a person or service, and prints its public key.",
            discussion: """
                The identity is a private key, in a new file that only its owner may read. The \
                public key is one line on standard output. key add --recipient gives it a slot, \
                and needs nothing secret of the recipient. --show prints that of an identity that \
                exists. The fingerprint, on standard error, is the one that key list shows.

                EXIT CODES
                  0 the file exists, even if the public key could not be written; 22 a file has \
                that name already. Any other: this run made none
                """)

        @Argument(help: "The new file.", completion: .file())
        var path: String
        @Flag(help: "Print the public key of the identity in the file, and make nothing.")
        var show = false
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Encodable {
            let path: ReportedPath
            let recipient: String
            let fingerprint: String

            init(_ path: String, _ identity: borrowing KeyCredential) throws(StoreError) {
                self.path = ReportedPath(path)
                recipient = try identity.recipientText()
                fingerprint = try identity.recipientFingerprint()
            }
        }

        var isChanging: Bool { !show }

        func validate() throws { try SecretFile.requirePath(path) }

        func run() async throws {
            if show {
                let source = SecretSource(origin: .file(path), form: .identity)
                return try write(Result(path, try SecretReader.credential(source, for: path)))
            }
            Signals.workBegins()
            let identity = KeyCredential.newIdentity()
            let result = try Result(path, identity)
            try identity.withIdentityLetters { letters in try PaperLetters.write(letters, to: path)
            }
            do {
                try write(result)
            } catch {
                Terminal.warn(
                    "this was done, but its report is lost: \(Failure(error).message); the public "
                        + "key is \(result.recipient)")
            }
        }

        private func write(_ result: Result) throws {
            var standardOutput = StandardOutput()
            try standardOutput.writeLine(output.json ? JSON.object(result) : result.recipient)
            try standardOutput.flush()
            if !output.json, !output.quiet { Terminal.note("fingerprint: \(result.fingerprint)") }
        }
    }
}
