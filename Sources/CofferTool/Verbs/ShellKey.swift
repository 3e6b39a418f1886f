import ArgumentParser
import Coffer

/// `coffer shell-key`
struct ShellKey: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints what the sqlcipher shell needs to open a store.",
        discussion: """
            The lines contain the raw key in the clear, which opens the file until the next rekey. \
            Send them where nobody else can read them.

            EXAMPLES
              coffer shell-key notes.db --reveal
              (coffer shell-key notes.db --reveal; cat) | sqlcipher notes.db
            """)

    @OptionGroup var store: StoreOptions
    @Flag(help: "Really write the key.")
    var reveal = false
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        guard reveal else {
            throw ValidationError("This writes the key in the clear: add --reveal if you mean it.")
        }
    }

    private struct Result: Encodable {
        let pragmas: [String]
    }

    func run() async throws {
        let connection = try store.connect(secret, mode: .readOnly)
        defer { connection.close() }
        try connection.withShellKey { lines in
            var standardOutput = StandardOutput()
            if output.json {
                let text = String(decoding: lines, as: UTF8.self)
                let pragmas = text.split(separator: "\n").map(String.init)
                try standardOutput.writeLine(JSON.object(Result(pragmas: pragmas)))
            } else {
                try standardOutput.write(lines)
            }
            try standardOutput.flush()
        }
    }
}
