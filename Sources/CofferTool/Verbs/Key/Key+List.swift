import ArgumentParser
import Coffer

extension Key {
    /// `coffer key list`
    struct ListSlots: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the slots of a keyring, and the ages of its keys. Needs no secret.",
            discussion: """
                It authenticates nothing: a user who may write the keyring can forge the list. key \
                test authenticates it.

                It also lists a copy of a keyring. The store id tells which store a copy belongs to.

                EXAMPLES
                  coffer key list notes.db
                  coffer key list --list stores.txt | grep '(anna)'
                """)

        @OptionGroup var stores: StoreListOptions
        @OptionGroup(title: "Output") var output: OutputOptions

        struct Result: Report {
            let path: ReportedPath
            /// Whether the file is a copy of a keyring, and not a store.
            let isCopy: Bool
            let keyring: KeyringReport

            var lines: [(label: String, value: String)] {
                [(isCopy ? "copy of a keyring" : "store", "\(path)")] + keyring.lines()
            }
        }

        func run() async throws {
            guard let path = stores.single?.path else {
                return try await VerbListRun(
                    verb: ["key", "list"], stores: stores, secret: nil, output: output,
                    options: [], summary: Self.summary
                ).run()
            }
            let (found, isCopy) = try Self.keyring(of: path)
            let keyring = KeyringReport(found)
            if !isCopy { Self.warn(of: keyring, path) }
            try output.print(
                Result(path: ReportedPath(path), isCopy: isCopy, keyring: keyring))
        }

        /// The epoch and the slots of a store of a list.
        @Sendable private static func summary(_ report: JSONTree) -> String? {
            guard let keyring = report["keyring"], let epoch = keyring["epoch"]?.integer,
                case .list(let slots)? = keyring["slots"]
            else { return nil }
            let names = slots.map { slot in
                return [SlotReport.name(in: slot), slot["kind"]?.text, slot["fingerprint"]?.text]
                    .compactMap(\.self).joined(separator: ", ")
            }
            return (["epoch \(epoch)"] + names).joined(separator: "; ")
        }

        /// Warns if the store is missing, or is another one than that of the keyring.
        private static func warn(of keyring: KeyringReport, _ path: String) {
            do {
                keyring.warn(ifNotOf: try StoreFileStatus(path: path), path: path)
            } catch {
                Terminal.warn("the store cannot be looked at: \(Failure(error).message)")
            }
        }

        /// The keyring of the store. A file without one may be a copy of a keyring itself.
        private static func keyring(of path: String) throws -> (keyring: Keyring, isCopy: Bool) {
            do {
                return (try Keyring(of: path), false)
            } catch let error as StoreError
                where [.keyringMissing, .notAStore].contains(error.code)
            {
                if let copy = try? Keyring(contentsOf: path) { return (copy, true) }
                guard try StoreFileStatus(path: path).byteCount == Keyring.fileByteCount else {
                    throw error
                }
                throw ToolError(
                    .keyring, error.message + ", and \(path) is not a whole copy of one",
                    hint: error.hint.flatMap(ToolWords.hint))
            }
        }
    }
}
