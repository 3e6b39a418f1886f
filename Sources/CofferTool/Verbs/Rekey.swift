import ArgumentParser
import Coffer
import Foundation

/// `coffer rekey`
struct Rekey: AsyncParsableCommand, ChangingVerb {
    static let configuration = CommandConfiguration(
        abstract: "Changes the key of every page, and proves it.",
        discussion: """
            It reports success only after a fresh connection has opened with the new key and the \
            old one has failed. If it fails or is killed, one of the two keys opens every row. The \
            journal needs as much room as the file. Copies made before keep the old key.

            EXAMPLES
              coffer rekey notes.db
              coffer rekey notes.db --passphrase-file old --new-passphrase-file new
              coffer rekey notes.db --passphrase-fd 3 --new-raw-key-fd 4 3< old 4< new.key
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup(title: "Current secret") var secret: SecretOptions
    @OptionGroup(title: "New secret") var newSecret: NewSecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func validate() throws {
        try newSecret.validate()
    }

    struct Result: Report {
        let path: String
        let pageCount: Int
        let seconds: Double

        var lines: [(label: String, value: String)] {
            [
                ("store", path), ("pages", "\(pageCount) under the new key"),
                ("proof", "a new connection opens with the new key and fails with the old one"),
                ("time", "\(seconds) s"),
            ]
        }
    }

    func run() async throws {
        let newSource = try newSecret.source(apartFrom: try secret.source())
        let result = try await store.withStore(secret) { opened in
            let newKey = KeyHolder(try SecretReader.new(newSource, for: store.path))
            return try await rekey(opened, to: newKey)
        }
        output.printDone(result)
    }

    private func rekey(_ opened: Store, to newKey: KeyHolder) async throws -> Result {
        let pageCount = try await opened.read { tx in
            try tx.firstRow("PRAGMA page_count")?.get(0, as: Int.self) ?? 0
        }
        let status = try StoreFileStatus(path: store.path)
        let progress = RekeyProgress.watch(status, output.reporter("rekey", unit: "bytes"))
        let start = ContinuousClock.now
        do {
            _ = try await Interruption.noting(
                "one of the two keys opens every row: coffer status --prompt tells which"
            ) {
                try await opened.rekey(to: newKey.takeOne())
            }
        } catch {
            progress.cancel()
            await progress.value
            throw error
        }
        progress.cancel()
        await progress.value
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        return Result(
            path: status.path, pageCount: pageCount, seconds: (seconds * 100).rounded() / 100)
    }
}

/// Watches how the journal or log grows to the size of the file: the engine tells nothing.
private enum RekeyProgress {
    static func watch(_ status: StoreFileStatus, _ reporter: ProgressReporter) -> Task<Void, Never>
    {
        Task {
            defer { reporter.finish() }
            guard reporter.isShown else { return }
            // The journal goes at the end; what was done stays done.
            var most = 0
            while !Task.isCancelled {
                // `stat` only: a descriptor of ours would drop SQLite's locks when it is closed.
                let written = ["-wal", "-journal"].map { suffix in
                    let facts = try? FileManager.default.attributesOfItem(
                        atPath: status.path + suffix)
                    return facts?[.size] as? Int ?? 0
                }
                most = max(most, min(written.max() ?? 0, status.byteCount))
                reporter.update(most, of: status.byteCount)
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
