import Foundation
import Testing

@testable import Coffer

/// Every store is an ordinary SQLCipher file: the shells open ours and we open theirs.
@Suite(.againstHanging, .onOwnThreads) struct ShellTests {
    /// How the store is opened.
    enum Secret: CaseIterable {
        case passphrase, raw, rawWithSalt

        /// Characters that have to be quoted, and some beyond ASCII.
        private static let phrase = "it's \"naïve\" x'00'"

        var key: StoreKey {
            switch self {
            case .passphrase: .passphrase(Self.phrase)
            case .raw: .raw([UInt8](repeating: 0xa7, count: 32))
            case .rawWithSalt:
                .raw([UInt8](repeating: 0xa7, count: 32) + [UInt8](repeating: 0x5b, count: 16))
            }
        }

        /// The secret as the shell's `PRAGMA key` takes it.
        var literal: String {
            switch self {
            case .passphrase:
                "'" + Self.phrase.replacingOccurrences(of: "'", with: "''") + "'"
            case .raw: "\"x'" + String(repeating: "a7", count: 32) + "'\""
            case .rawWithSalt:
                "\"x'" + String(repeating: "a7", count: 32)
                    + String(repeating: "5b", count: 16) + "'\""
            }
        }
    }

    struct Combination: CustomTestStringConvertible {
        let shell: Shell
        let secret: Secret
        let journalMode: Configuration.JournalMode
        let profile: CipherProfile

        var testDescription: String {
            "\(shell.testDescription), \(secret), \(journalMode), \(profile)"
        }

        /// The pragmas that open the file in the shell, key first.
        var pragmas: String { shell.pragmas(key: secret.literal, profile) }

        static let all: [Combination] = {
            var all: [Combination] = []
            for shell in Shell.all {
                let families: [CipherProfile] =
                    shell.majorVersion >= 4 && isEngine4 ? [.portable, .sqlcipher4] : [.portable]
                for family in families {
                    for pageByteCount in [1024, 4096, 65536] {
                        guard let profile = try? family.with(pageByteCount: pageByteCount) else {
                            continue
                        }
                        for secret in Secret.allCases {
                            for mode in journalModes {
                                all.append(
                                    Combination(
                                        shell: shell, secret: secret, journalMode: mode,
                                        profile: profile))
                            }
                        }
                    }
                }
            }
            return all
        }()
    }

    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
    }

    /// 200 values that fill several pages of every size, with text that needs care.
    private static let texts = (0..<200).map { number in
        "\(number): d'été, " + String(repeating: "x", count: number * 7)
    }

    private static var checksum: String {
        let byteCount = texts.reduce(0) { $0 + $1.utf8.count }
        return "200|\(byteCount)|\(texts[123])"
    }

    private static let query = """
        SELECT (SELECT count(*) FROM t) || '|' || (SELECT sum(length(CAST(v AS BLOB))) FROM t)
            || '|' || (SELECT v FROM t WHERE id = 123)
        """

    @Test func `the shells of both engines are installed`() {
        guard Repository.isCI else { return }
        #expect(Shell.isComplete, "run Scripts/sqlcipher4, which makes the shell of SQLCipher 4")
        #expect(Combination.all.count >= Shell.all.count * 18)
    }

    @Test(arguments: Combination.all)
    func `the shell opens what Coffer writes`(_ with: Combination) throws {
        let store = try Store(
            path: path, key: with.secret.key,
            configuration: .testing(with.journalMode, profile: with.profile))
        try store.write { tx in
            try tx.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT)")
            for (id, text) in Self.texts.enumerated() {
                try tx.execute("INSERT INTO t VALUES (\(id), \(text))")
            }
        }
        try store.close()
        let printed = try with.shell.run(
            with.pragmas + "\(Self.query);\nPRAGMA integrity_check;\nPRAGMA journal_mode;\n",
            on: path)
        // The newer shell answers `ok` to the key.
        #expect(
            Array(printed.suffix(3)) == [Self.checksum, "ok", with.journalMode.description],
            "\(printed)")
    }

    @Test(arguments: Combination.all)
    func `Coffer opens what the shell writes`(_ with: Combination) throws {
        let rows = Self.texts.enumerated().map { id, text in
            "INSERT INTO t VALUES (\(id), '\(text.replacingOccurrences(of: "'", with: "''"))');"
        }
        let printed = try with.shell.run(
            with.pragmas + "PRAGMA journal_mode = \(with.journalMode);\n"
                + "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);\nBEGIN;\n"
                + rows.joined(separator: "\n") + "\nCOMMIT;\n",
            on: path)
        #expect(printed.last == with.journalMode.description, "\(printed)")

        let store = try Store(
            path: path, key: with.secret.key, mode: .mustExist,
            configuration: .testing(.existing, profile: with.profile))
        #expect(store.journalMode == with.journalMode)
        let found = try store.read { tx in try tx.firstRow(SQL(text: Self.query))?[0] }
        #expect(found == .text(Self.checksum))
        let report = try store.verify()
        #expect(report.isGood, "\(report)")
        try store.close()
    }
}
