import ArgumentParser
import Coffer

extension Key {
    /// `coffer key export-root`
    struct ExportRoot: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            abstract: "Shows the root backup: the letters from which a lost keyring is rebuilt.",
            discussion: """
                Whoever has the letters can open the store and every backup of it, also after \
                every slot was changed. They are shown on the terminal, or written to a new file. \
                The keyring counts how often.

                EXIT CODES
                  0 the letters were shown or written; 22 a file has that name already; any other: \
                they were not, but key list may count the attempt
                """)

        @OptionGroup var store: StoreOptions
        @Option(
            name: .customLong("out"),
            help: ArgumentHelp("Write the letters to a new file.", valueName: "path"),
            completion: .file())
        var newPath: String?
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            /// The file with the letters; `nil` if they were shown on the terminal.
            let copy: ReportedPath?
            let rootBackupCount: Int

            var lines: [(label: String, value: String)] {
                [
                    ("store", "\(path)"), ("root backup", copy.map { "\($0)" } ?? "shown"),
                    ("shown so far", rootBackupCount.counted("time")),
                    ("note", "it opens this store and all of its backups"),
                ]
            }
        }

        func run() async throws {
            // The keyring counts a backup before the letters are written. A wrong path is refused
            // before the count, so that nobody has to look for letters that never existed.
            if let newPath {
                try NewFile.requireFree(newPath)
                try NewFile.requireFolder(newPath)
            }
            try store.requireKeyring(secret)
            // Shown letters that nobody can see would be counted.
            if newPath == nil {
                try Prompt.terminal(
                    toShow: "the letters", hint: "Name a new file for them with --out."
                ).close()
            }
            let path = store.path
            let count = try await store.withStore(secret) { opened in
                try opened.keys.withRootBackup { letters in
                    guard let newPath else {
                        return try PaperLetters.show(letters, title: "Root backup of \(path)")
                    }
                    try PaperLetters.write(letters, to: newPath)
                }
                return try opened.keys.keyring.rootBackups.count
            }
            output.printDone(
                Result(
                    path: ReportedPath(store.path), copy: newPath.map { ReportedPath($0) },
                    rootBackupCount: count))
        }
    }
}
