import ArgumentParser
import Coffer
import SystemPackage

extension Key {
    /// `coffer key backup`
    struct BackUp: AsyncParsableCommand, ChangingVerb {
        static let configuration = CommandConfiguration(
            commandName: "backup",
            abstract: "Copies keyrings, after their content is authenticated.",
            discussion: """
                The copy opens the store by every credential that has a slot now. coffer backup \
                copies a store with its keyring.

                With --to, the copy gets the id of its store for a name. coffer key list shows \
                which store a copy belongs to.

                EXAMPLES
                  coffer key backup notes.db notes.keyring-2026-11
                  coffer key backup --list stores.txt --to keyrings-2026-11 --key-file ops.key

                EXIT CODES
                  0 the copy exists, even if the report could not be written; 3 some stores of a \
                list are not done; 22 a file has that name already. Any other: this run made none
                """)

        @OptionGroup var stores: StoreListOptions
        @Option(
            help: ArgumentHelp(
                "The folder of the copies. Without it, the arguments are a store and the new file.",
                valueName: "folder"),
            completion: .directory)
        var to: String?
        @OptionGroup(title: "Secret") var secret: SecretOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            let copy: ReportedPath

            var lines: [(label: String, value: String)] {
                [("store", "\(path)"), ("copy of its keyring", "\(copy)")]
            }
        }

        func validate() throws {
            if let to { return try SecretFile.requirePath(to) }
            guard sources.single != nil, stores.paths.count == 2 else {
                throw ValidationError("Name a store and a new file, or a folder with --to.")
            }
            guard stores.paths[1] != "-" else {
                throw ValidationError(
                    "A copy of a keyring is written to a file; ./- is one of that name.")
            }
        }

        func run() async throws {
            if let to, !NewFile.isFolder(to) {
                throw ToolError(
                    .notFound, "there is no folder \(to)",
                    hint: "Create it first: mkdir \(ShellWord.of(to))")
            }
            guard let store = sources.single else {
                return try await VerbListRun(
                    verb: ["key", "backup"], stores: stores, secret: secret, output: output,
                    options: to.map { ["--to=\($0)"] } ?? []
                ).run()
            }
            let newPath = try copyPath(of: store.path)
            try NewFile.requireFree(newPath)
            try await store.withKeyring(secret, mode: .readOnly, hardLinks: .told) { opened in
                _ = try opened.keys.slots
                try await opened.keys.backUp(to: newPath)
            }
            output.printDone(
                Result(path: ReportedPath(store.path), copy: ReportedPath(newPath)))
        }

        /// Without `--to`, the second argument is the new file.
        private var sources: StoreListOptions { to == nil ? stores.ofFirstPath : stores }

        private func copyPath(of path: String) throws -> String {
            guard let to else { return stores.paths[1] }
            RunFiles.opens(path)
            let name = try Keyring(of: path).storeID + ".keyring"
            return FilePath(to).appending(name).string
        }
    }
}
