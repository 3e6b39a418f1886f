import ArgumentParser
import Coffer

/// `coffer keygen`
struct KeyGen: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Makes a file with a random raw key.",
        discussion: """
            The file has 64 hex digits, which only its owner may read, and is never an existing \
            one. A raw key opens a store at once, without the derivation that a passphrase needs. \
            Keep a copy where the store is not: nothing else opens it.

            EXAMPLES
              coffer keygen notes.key && coffer init notes.db --raw-key-file notes.key
              coffer keygen new.key && coffer rekey notes.db --new-raw-key-file new.key

            EXIT CODES
              0 the file exists, even if the report could not be written; 22 a file has that name \
            already. Any other: this run made none
            """)

    @Argument(help: "The new file.", completion: .file())
    var path: String
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws { try SecretFile.requirePath(path) }

    struct Result: Report {
        let path: ReportedPath

        var lines: [(label: String, value: String)] { [("key file", "\(path)")] }
    }

    func run() async throws {
        Signals.workBegins()
        try RawKeyText.withRandomDigits { digits in try SecretFile.write(digits, to: path) }
        output.printDone(Result(path: ReportedPath(path)))
    }
}
