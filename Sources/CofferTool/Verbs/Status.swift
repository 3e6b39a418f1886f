import ArgumentParser
import Coffer

/// `coffer status`
struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says what a file is and, with its key, what it contains.",
        discussion: """
            Without a secret it reports only what is visible from outside, such as the slots of a \
            keyring. With a secret \
            (--prompt, a --passphrase-… or --raw-key-… option, or a COFFER_… variable) it proves \
            the key and counts rows. It shows the key's id, which is derived and stored nowhere: \
            two files have the same only if key and salt are equal. It changes no content, and \
            may only leave the -shm, an index, beside a WAL with content. It rolls back a \
            transaction that a crash left unfinished.

            EXAMPLES
              coffer status notes.db
              coffer status notes.db --prompt
              coffer status notes.db --passphrase-fd 3 --json 3< secret
            """)

    @OptionGroup var stores: StoreListOptions
    @Flag(help: "Ask for the passphrase on the terminal.")
    var prompt = false
    @Flag(help: "Only prove the secret: exit code 0 if it opens the file, 12 if not.")
    var testKey = false
    @OptionGroup(title: "Secret") var secret: SecretOptions
    @OptionGroup(title: "Output") var output: OutputOptions

    func run() async throws {
        guard let store = stores.single else { return try await runAll() }
        let file = try StoreFileStatus(path: store.path)
        var result = StatusReport(file: file, engine: try Engine.capabilities)
        if try Keyring.exists(for: store.path) {
            do {
                let keyring = KeyringReport(try Keyring(of: store.path))
                keyring.warn(ifNotOf: file, path: store.path)
                result.keyring = keyring
            } catch {
                Terminal.warn("the keyring cannot be read: \(Failure(error).message)")
            }
        }
        let source = try secret.named() ?? (prompt ? secret.accepting(.prompt) : secret.source())
        // Variables are for all stores of an environment, so a file without a key is not a mistake.
        let isNamed = try secret.named() != nil || prompt || testKey
        if isNamed || !source.isPrompt && file.format == .encrypted {
            let key = try SecretReader.current(source, for: store.path)
            let opened = try await store.open(with: key, mode: .readOnly)
            result.content = try await store.closing(opened) { opened in
                try StatusReport.Content(of: opened, isCounted: !testKey)
            }
        }
        try output.print(result)
    }

    private func runAll() async throws {
        let named = try secret.named()
        // Without a source, each run looks at the variables by itself.
        let isGiven = named != nil || prompt || testKey
        try await VerbListRun(
            verb: ["status"], stores: stores, secret: isGiven ? secret : nil, output: output,
            options: testKey ? ["--test-key"] : [], isPrompted: prompt && named == nil,
            summary: { report in
                let keyring = report["keyring"]
                return [
                    report["format"]?.text,
                    report["byteCount"]?.integer.map(ProgressLine.bytes),
                    report["content"].map { _ in "the key opens it" },
                    keyring?["keyAge"]?.integer.map { "key \($0.counted("day")) old" },
                    keyring?["rootAge"]?.integer.map { "root \($0.counted("day")) old" },
                ].compactMap(\.self).joined(separator: ", ")
            }
        ).run()
    }
}

/// The report of `status`.
struct StatusReport: Report {
    let path: ReportedPath
    let format: StoreFileStatus.Format
    let storeID: String?
    let byteCount: Int
    let walByteCount: Int
    let journalByteCount: Int
    let engine: String
    let engineNotice: String?
    /// The public part of the keyring, which is not authenticated; `nil` without a keyring.
    var keyring: KeyringReport?
    var content: Content?

    /// The facts that only the key reveals.
    struct Content: Encodable {
        let keyID: String
        let profile: String
        let journalMode: String
        let pageByteCount: Int
        let pageCount: Int
        let freePageCount: Int
        /// Whether the main file without its WAL opens with the key; `false` between a rekey and
        /// its checkpoint.
        let opensWithoutWAL: Bool
        /// `nil` if the rows were not to be counted.
        let tables: [Table]?

        struct Table: Encodable {
            let name: String
            let rowCount: Int
        }

        init(of store: Store, isCounted: Bool) throws {
            keyID = try store.keyID().description
            profile = store.profile.description
            pageByteCount = store.profile.pageByteCount
            journalMode = store.journalMode.description
            opensWithoutWAL = try store.opensWithoutWAL()
            (pageCount, freePageCount, tables) = try store.read { tx in
                let pages: Int = try tx.firstRow("PRAGMA page_count")?.get(0) ?? 0
                let free: Int = try tx.firstRow("PRAGMA freelist_count")?.get(0) ?? 0
                guard isCounted else { return (pages, free, nil) }
                let names = try tx.rows(
                    """
                    SELECT name FROM sqlite_master
                    WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
                    """)
                let tables = try names.map { row in
                    let name: String = try row.get(0)
                    let count = try tx.firstRow("SELECT count(*) FROM \(identifier: name)")
                    return Table(name: name, rowCount: try count?.get(0) ?? 0)
                }
                return (pages, free, tables)
            }
        }
    }

    init(file: StoreFileStatus, engine: Engine.Capabilities) {
        path = ReportedPath(file.path)
        format = file.format
        storeID = file.storeID
        byteCount = file.byteCount
        walByteCount = file.walByteCount
        journalByteCount = file.journalByteCount
        self.engine = engine.names
        engineNotice = engine.ageNotice
    }

    var lines: [(label: String, value: String)] {
        var lines = [
            ("file", "\(path)"), ("format", content.map { "store, \($0.profile)" } ?? formatText),
        ]
        if let storeID { lines.append(("store id", storeID)) }
        lines += [
            ("size", "\(byteCount) bytes"), ("WAL", Self.bytes(walByteCount)),
            ("journal", Self.bytes(journalByteCount)),
        ]
        if let content {
            lines += [
                ("key", "opens it"), ("key id", content.keyID),
                ("journal mode", content.journalMode),
                (
                    "pages",
                    "\(content.pageCount) of \(content.pageByteCount) bytes, "
                        + "\(content.freePageCount) free"
                ),
            ]
            if let tables = content.tables { lines.append(("tables", "\(tables.count)")) }
            if !content.opensWithoutWAL {
                let text = "does not open with this key without its WAL: "
                lines.append(
                    (
                        "main file",
                        text
                            + (keyring == nil
                                ? "if the key was changed, run the same rekey again"
                                : "coffer checkpoint moves it there")
                    ))
            }
            if let keyring, keyring.keyID != content.keyID {
                let text = "does not have the epoch of the file yet: coffer checkpoint records it"
                lines.append(("keyring", text))
            }
            lines += (content.tables ?? []).map { ("  \($0.name)", $0.rowCount.counted("row")) }
        }
        lines += keyring?.lines(isOf: storeID) ?? []
        lines.append(("engine", engine))
        if let engineNotice { lines.append(("", engineNotice)) }
        return lines
    }

    private var formatText: String {
        switch format {
        case .empty: "empty: not a store, but possibly the remains of one"
        case .notAStore: "not a store"
        case .blank where walByteCount + journalByteCount > 0:
            "its first page is blank, but the WAL or journal may contain it: run status with the "
                + "key"
        case .blank: "blank, which is damage: " + Remedy.ofDamage(to: "\(path)")
        case .plaintext: "plaintext SQLite database: not encrypted"
        case .plaintextHeader:
            "encrypted by SQLCipher 4 behind a plaintext header: no verb opens it"
        case .keyring:
            "a keyring, or a copy of one: coffer key list \(ShellWord.of("\(path)")) shows its "
                + "slots"
        case .encrypted: "encrypted, or noise: only the key tells"
        }
    }

    private static func bytes(_ count: Int) -> String { count == 0 ? "none" : "\(count) bytes" }
}
