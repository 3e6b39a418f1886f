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
}
