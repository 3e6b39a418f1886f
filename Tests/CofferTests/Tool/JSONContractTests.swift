import Foundation
import Testing

@testable import Coffer
@testable import CofferTool

/// `Documentation/json.md`, compared with what the verbs write.
@Suite(.againstHanging, .onOwnThreads) struct JSONContractTests {
    private enum Tree: Decodable {
        case bool(Bool)
        case number(Double)
        case text(String)
        case list([Tree])
        case object([String: Tree])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else if let value = try? container.decode([Tree].self) {
                self = .list(value)
            } else {
                self = .object(try container.decode([String: Tree].self))
            }
        }

        subscript(name: String) -> Tree? {
            if case .object(let members) = self { members[name] } else { nil }
        }

        var text: String? {
            if case .text(let text) = self { text } else { nil }
        }

        /// The description's name of each field in it, and its type.
        func fields(_ path: String = "") -> [(name: String, type: String)] {
            switch self {
            case .bool: [(path, "true or false")]
            case .number: [(path, "number")]
            case .text: [(path, "text")]
            case .list(let items): items.flatMap { $0.fields(path + "[]") }
            case .object(let members):
                (path.isEmpty ? [] : [(path, "object")])
                    + members.flatMap { $1.fields(path.isEmpty ? $0 : "\(path).\($0)") }
            }
        }
    }

    private struct Field {
        let type: String
        let mayBeAbsent: Bool
    }

    /// The fields of each section.
    private static func sections() throws -> [String: [String: Field]] {
        var sections: [String: [String: Field]] = [:]
        var title = ""
        for line in try Repository.text("Documentation/json.md").split(separator: "\n") {
            if line.hasPrefix("## ") { title = String(line.dropFirst(3)) }
            let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard line.hasPrefix("| `"), cells.count == 3 else { continue }
            sections[title, default: [:]][cells[0].trimmingCharacters(in: ["`"])] = Field(
                type: cells[1], mayBeAbsent: cells[2].contains("absent"))
        }
        return sections
    }

    /// Expects that the objects have the fields that a section describes and no others, each of
    /// them at least once.
    ///
    /// - Parameters:
    ///   - unseen: Fields that these objects do not have.
    ///   - areLines: Whether they are rows, which have no `schema`.
    private func expect(
        _ objects: [Data], describedBy title: String, unseen: Set<String> = [],
        areLines: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let described = try #require(try Self.sections()[title], sourceLocation: sourceLocation)
        var seen: Set<String> = []
        for data in objects {
            let tree = try JSONDecoder().decode(Tree.self, from: data)
            guard case .object(let members) = tree else {
                Issue.record("no object", sourceLocation: sourceLocation)
                continue
            }
            if case .number(1) = members["schema"] {
                #expect(!areLines, sourceLocation: sourceLocation)
            } else {
                #expect(areLines, "no schema 1", sourceLocation: sourceLocation)
            }
            for (name, type) in tree.fields() where name != "schema" {
                // A field of the type "any" may be an object, whose members are not described.
                let parts = name.indices.filter { name[$0] == "." || name[$0] == "[" }
                let owners = (parts + [name.endIndex]).map { String(name[..<$0]) }
                if let owner = owners.first(where: { described[$0]?.type == "any" }) {
                    seen.insert(owner)
                    continue
                }
                #expect(described[name]?.type == type, "\(name)", sourceLocation: sourceLocation)
                seen.insert(name)
            }
            for (name, field) in described where !name.contains(".") && !field.mayBeAbsent {
                let isThere = members[name.replacing("[]", with: "")] != nil
                #expect(isThere, "\(name) is missing", sourceLocation: sourceLocation)
            }
        }
        #expect(seen == Set(described.keys).subtracting(unseen), sourceLocation: sourceLocation)
    }

    private let store: ToolStore

    init() throws {
        store = try ToolStore()
        try store.execute(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, v)", "INSERT INTO t(v) VALUES (1), (2)")
    }

    private func out(_ verb: String, _ arguments: [String] = []) throws -> Data {
        let output = try store.run(verb, arguments + ["--json"])
        #expect(output.exitCode == 0, "\(output.errorText)")
        return output.stdout
    }

    private func lines(_ output: Data) -> [Data] {
        output.split(separator: 10).map { Data($0) }
    }

    private func path(_ name: String) -> String { store.folder.path(name) }

    // MARK: Results

    @Test func `status, init and checkpoint write the fields that are described`() throws {
        let outside = try Tool.run(["status", store.path, "--json"]).stdout
        let notice: Set<String> = try Engine.capabilities.ageNotice == nil ? ["engineNotice"] : []
        let keyed = try Store(
            path: path("keyed.db"), key: .keyring(.passphrase("open sesame")),
            configuration: .testing())
        let identity = KeyCredential.newIdentity()
        try keyed.keys.add(.recipient(identity.publicKey()), label: "billing")
        try keyed.keys.withRootBackup { _ in }
        try keyed.close()
        let listed = try Tool.run(["status", path("keyed.db"), "--json"]).stdout
        try expect(
            [outside, try out("status"), listed], describedBy: "`coffer status`", unseen: notice)
        let made = try Tool.run(
            ["init", path("new.db"), "--raw-key-fd", "3", "--json"], descriptors: [3: Tool.key(1)])
        try Data("open sesame".utf8).write(to: URL(filePath: path("words")))
        let madeBoth = try Tool.run(
            [
                "init", path("both.db"), "--keyring", "--no-recovery-key", "--passphrase-file",
                path("words"), "--json",
            ])
        try expect(
            [made.stdout, madeBoth.stdout], describedBy: "`coffer init`",
            unseen: ["slots[].fingerprint"])
        try expect([try out("checkpoint")], describedBy: "`coffer checkpoint`")
        try expect([try out("compact")], describedBy: "`coffer compact`")
        try expect(
            [try out("journal-mode"), try out("journal-mode", ["delete"])],
            describedBy: "`coffer journal-mode`")
        try expect(
            [try Tool.run(["keygen", path("new.key"), "--json"]).stdout],
            describedBy: "`coffer keygen`")
    }

    @Test func `verify writes the fields that are described`() throws {
        func verify(_ path: String, exitCode: Int32) throws -> Data {
            let output = try Tool.run(
                ["verify", path, "--raw-key-fd", "3", "--json"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == exitCode && output.stderr.isEmpty, "\(output.errorText)")
            return output.stdout
        }
        let good = try verify(store.path, exitCode: 0)
        let connection = try store.connect()
        for _ in 0..<3 { try connection.execute("INSERT INTO t(v) VALUES (zeroblob(900))") }
        let copy = path("copy.db")
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: store.path + suffix, toPath: copy + suffix)
        }
        // A collation that the tool does not have prevents the check of the structure.
        try connection.register(collation: "mine") { $0 < $1 ? .orderedAscending : .orderedSame }
        try connection.execute("CREATE TABLE c(v COLLATE mine UNIQUE)")
        connection.close()
        let unchecked = try verify(store.path, exitCode: 0)
        let pageByteCount = CipherProfile.portable.pageByteCount
        // In the second of three commits: damage to the last one looks like a crash.
        try Damage.flip(copy + "-wal", at: 32 + (24 + pageByteCount) + 500)
        let cutOff = try verify(copy, exitCode: 14)
        try FileManager.default.removeItem(atPath: copy + "-wal")
        try Damage.flip(copy, at: pageByteCount + 500)
        let damaged = try verify(copy, exitCode: 14)
        try expect([good, unchecked, cutOff, damaged], describedBy: "`coffer verify`")
    }

    @Test func `salvage and restore write the fields that are described`() throws {
        try store.execute("CREATE TABLE big(id INTEGER PRIMARY KEY, body)")
        let connection = try store.connect()
        for _ in 0..<40 { try connection.execute("INSERT INTO big(body) VALUES (zeroblob(900))") }
        try connection.execute("INSERT INTO big(body) VALUES (zeroblob(90000))")
        let size = try #require(connection.profile).pageByteCount
        let count = try connection.current().firstInteger("PRAGMA page_count")
        connection.close()
        let good = try out("salvage", [path("whole.db")])
        let restored = try Tool.run(
            [
                "restore", path("whole.db"), path("other.db"), "--raw-key-fd", "3", "--json",
            ], descriptors: [3: Tool.key(1)])
        let again = try Tool.run(
            [
                "restore", path("whole.db"), path("other.db"), "--raw-key-fd", "3", "--json",
            ], descriptors: [3: Tool.key(1)])
        let keyed = try makeKeyedBackup()
        let withKeyring = try Tool.run(
            ["restore", keyed.path, path("third.db"), "--json"] + keyed.secret)
        try expect(
            [restored.stdout, again.stdout, withKeyring.stdout], describedBy: "`coffer restore`")
        var reports = [good]
        for page in stride(from: 3, through: count, by: 4) {
            let damaged = path("damaged.db")
            try FileManager.default.copyItem(atPath: store.path, toPath: damaged)
            try Damage.flip(damaged, at: page * size - 300)
            // Without page 1, rows are in the table for lost rows.
            if page == 3 { try Damage.flip(damaged, at: size - 300) }
            let output = try Tool.run(
                ["salvage", damaged, path("rest\(page).db"), "--raw-key-fd", "3", "--json"],
                descriptors: [3: Tool.key(1)])
            #expect([0, 14].contains(output.exitCode) && output.stderr.isEmpty)
            reports.append(output.stdout)
            try FileManager.default.removeItem(atPath: damaged)
        }
        try expect(reports, describedBy: "`coffer salvage`")
    }

    @Test func `rekey and its rehearsal write the fields that are described`() throws {
        func rekey(_ arguments: String...) throws -> Data {
            let output = try Tool.run(
                ["rekey", store.path, "--raw-key-fd", "3", "--new-raw-key-fd", "4", "--json"]
                    + arguments, descriptors: [3: Tool.key(1), 4: Tool.key(2)])
            #expect(output.exitCode == 0, "\(output.errorText)")
            return output.stdout
        }
        let other = try store.connect()
        try expect(
            [try rekey("--dry-run")], describedBy: "`coffer rekey --dry-run`",
            unseen: ["obstacles[]"])
        other.close()
        try expect(
            [try rekey(), try rekey()], describedBy: "`coffer rekey`", unseen: ["abandonedKeyring"])
    }

    @Test func `every copy writes the fields that are described`() throws {
        let plain = path("plain.db")
        try expect(
            [
                try out("backup", [path("a.db")]), try out("upgrade", [path("b.db")]),
                try out("decrypt", [plain, "--write-plaintext"]),
                try Tool.run(
                    ["encrypt", plain, path("c.db"), "--raw-key-fd", "3", "--json"],
                    descriptors: [3: Tool.key(1)]
                ).stdout, try makeKeyedBackup().output,
            ], describedBy: "`coffer backup`, `upgrade`, `encrypt` and `decrypt`")
    }

    /// A backup of a store with a keyring, and the options that open it.
    private func makeKeyedBackup() throws -> (path: String, secret: [String], output: Data) {
        try Data(repeating: 9, count: 32).write(to: URL(filePath: path("file-of-keyed")))
        let secret = ["--key-file", path("file-of-keyed")]
        let (original, copy) = (path("original.db"), path("copy-of-keyed.db"))
        let made = try Tool.run(["init", original, "--keyring", "--no-recovery-key"] + secret)
        let output = try Tool.run(["backup", original, copy, "--json"] + secret)
        #expect(made.exitCode == 0 && output.exitCode == 0, "\(output.errorText)")
        return (copy, secret, output.stdout)
    }

    @Test func `the verbs of content write the fields that are described`() throws {
        func kv(_ verb: String, _ arguments: String...) throws -> Data {
            try Tool.run(
                ["kv", verb, store.path] + arguments + ["--raw-key-fd", "3", "--json"],
                descriptors: [3: Tool.key(1)]
            ).stdout
        }
        let put = try kv("put", "b", "k", "v")
        try expect(
            [try kv("get", "b", "k")] + lines(try kv("list", "b"))
                + lines(try kv("list", "b", "--keys-only")),
            describedBy: "`coffer kv get` and each line of `kv list`", areLines: true)
        let library = try Store(path: store.path, key: .numbered(1), configuration: .testing())
        let sessions = Bucket<String, Data>("sessions", lifetime: .seconds(60))
        try library.set(Data([1]), for: "a", in: sessions)
        try library.close()
        try expect(
            lines(try kv("buckets")), describedBy: "Each line of `coffer kv buckets`")
        try expect([try kv("count", "b")], describedBy: "`coffer kv count`")
        _ = try Tool.run(
            ["kv", "put", store.path, "n", "k", "int:1", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        try expect(
            lines(try out("tables")), describedBy: "Each line of `coffer tables`", areLines: true)
        try expect(
            lines(try out("schema")), describedBy: "Each line of `coffer schema`", areLines: true)
        try expect([try kv("incr", "n", "k")], describedBy: "`coffer kv incr`")
        try expect(
            [try kv("expire", "n", "k", "--after", "1d"), try kv("expire", "n", "k", "--never")],
            describedBy: "`coffer kv expire`")
        let entries = path("entries.jsonl")
        try expect(
            [try kv("export", "b", "--output", entries)],
            describedBy: "`coffer kv export --output`")
        try expect(
            [
                try kv("import", "new", entries, "--key-type", "text"),
                try kv("import", "new", entries, "--keep"),
            ], describedBy: "`coffer kv import`")
        _ = try kv("expire", "b", "k", "--after", "1d")
        try expect(
            lines(
                try Tool.run(
                    ["kv", "export", store.path, "b", "--raw-key-fd", "3"],
                    descriptors: [3: Tool.key(1)]
                ).stdout), describedBy: "Each line of `coffer kv export`", areLines: true)
        try expect(
            [
                put, try kv("put", "b", "k", "v", "--expires-after", "1d"),
                try kv("delete", "b", "k"), try kv("drop", "n"),
            ],
            describedBy: "`coffer kv put`, `kv delete` and `kv drop`")
        try expect(
            [try out("sql", ["DELETE FROM t WHERE id = 1", "--write"])],
            describedBy: "`coffer sql` with a statement that returns no rows")
        let (csv, sql) = (path("in.csv"), path("in.sql"))
        try Data("a\n1\n".utf8).write(to: URL(filePath: csv))
        try Data("CREATE TABLE z(a);".utf8).write(to: URL(filePath: sql))
        try expect(
            [try out("import", [csv, "--table", "new"]), try out("import", [sql])],
            describedBy: "`coffer import`")
        try expect(
            [try out("export", ["--output", path("out.sql")])],
            describedBy: "`coffer export --output`")
        try expect([try out("shell-key", ["--reveal"])], describedBy: "`coffer shell-key`")
        try Data().write(to: URL(filePath: path("other.db.new-0123456789abcdef")))
        try expect(
            [try Tool.run(["doctor", store.folder.url.path, "--json"]).stdout],
            describedBy: "`coffer doctor`")
    }

    @Test func `the verbs of replicas write the fields that are described`() throws {
        let remote = path("remote")
        try FileManager.default.createDirectory(
            atPath: remote, withIntermediateDirectories: false)
        func run(_ arguments: [String]) throws -> Data {
            let output = try Tool.run(
                arguments + ["--raw-key-fd", "3", "--json"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == 0, "\(output.errorText)")
            return output.stdout
        }
        let restoredWithKeyring = try restoredWithKeyring()
        // A failed event needs a remote that goes away.
        let failure = Failure(StoreError(.remoteUnavailable, "gone", hint: "Wait."))
        let failed = ReplicateEvent(
            event: .failed, path: ReportedPath(store.path), remote: remote, time: .now,
            position: nil, error: failure, seconds: 190)
        try expect(
            [try out("replicate", [remote, "--once"]), Data(JSON.object(failed).utf8)],
            describedBy: "`coffer replicate`", unseen: ["error.pages[]"])
        try expect(
            [try run(["replicas", remote]), try run(["replicas", remote, "--all"])],
            describedBy: "`coffer replicas`")
        try expect(
            [
                try Tool.run(["replica", "check", remote, "--json"]).stdout,
                try Tool.run(["replica", "check", path("keyed-remote"), "--json"]).stdout,
            ],
            describedBy: "`coffer replica check`")
        try expect(
            [try run(["replica", "purge", remote])], describedBy: "`coffer replica purge`")
        try expect(
            [
                try run(["restore", remote, path("restored.db")]),
                try run(["replica", "verify", remote]), restoredWithKeyring,
            ], describedBy: "`coffer restore` of a replica, and `coffer replica verify`",
            unseen: ["damage"])
    }

    /// The report of `restore` about the replica of a store with a keyring.
    private func restoredWithKeyring() throws -> Data {
        try Data(repeating: 1, count: 32).write(to: URL(filePath: path("credential")))
        try FileManager.default.createDirectory(
            atPath: path("keyed-remote"), withIntermediateDirectories: false)
        var last = Data()
        for arguments in [
            ["init", path("with-keyring.db"), "--keyring", "--no-recovery-key"],
            ["replicate", path("with-keyring.db"), path("keyed-remote"), "--once"],
            ["restore", path("keyed-remote"), path("restored-keyring.db"), "--json"],
        ] {
            let output = try Tool.run(arguments + ["--key-file", path("credential")])
            try #require(output.exitCode == 0, "\(output.errorText)")
            last = output.stdout
        }
        return last
    }

    @Test func `the verbs of keyrings write the fields that are described`() throws {
        let keyed = path("keyed.db")
        try Data(repeating: 1, count: 32).write(to: URL(filePath: path("file")))
        try Data(repeating: 2, count: 32).write(to: URL(filePath: path("second")))
        try Data("open sesame".utf8).write(to: URL(filePath: path("words")))
        func run(_ arguments: [String]) throws -> Data {
            let output = try Tool.run(arguments + ["--json"])
            #expect(output.exitCode == 0, "\(output.errorText)")
            return output.stdout
        }
        func key(_ verb: String, _ arguments: String...) throws -> Data {
            try run(["key", verb, keyed] + arguments + ["--key-file", path("file")])
        }
        let identity = try run(["key", "make-identity", path("identity")])
        let recipient = try #require(
            try JSONDecoder().decode(Tree.self, from: identity)["recipient"]?.text)
        try Data(recipient.utf8).write(to: URL(filePath: path("recipient")))
        try expect([identity], describedBy: "`coffer key make-identity`")
        try expect(
            [try run(["key", "make-file", path("third")])], describedBy: "`coffer key make-file`")
        _ = try run(["init", keyed, "--keyring", "--no-recovery-key", "--key-file", path("file")])
        let added = try key("add", "--new-passphrase-file", path("words"))
        try expect(
            [
                added, try key("add", "--recipient", path("recipient")),
                try key("change", "2", "--new-key-file", path("second")),
                try key("rename", "2", "ops"), try key("test"),
            ], describedBy: "`coffer key add`, `change`, `rename` and `test`")
        _ = try key("remove", "2")
        _ = try key("add", "--new-passphrase-file", path("words"))
        try expect([try key("backup", path("copy"))], describedBy: "`coffer key backup`")
        try expect(
            [try run(["rotate", keyed, "--key-file", path("file")])],
            describedBy: "`coffer rotate` and `coffer revoke`")
        try expectLists(of: keyed)
        let plain = try Store(
            path: path("plain.db"), key: .numbered(1), configuration: .testing())
        try plain.close()
        let enable = ["key", "enable", path("plain.db"), "--raw-key-fd", "3", "--recovery-key-out"]
        let enabled = try Tool.run(
            enable + [path("letters"), "--new-passphrase-file", path("words"), "--json"],
            descriptors: [3: Tool.key(1)])
        #expect(enabled.exitCode == 0, "\(enabled.errorText)")
        try expect([enabled.stdout], describedBy: "`coffer key enable`")
        try expect(
            [try key("export-root", "--out", path("root"))],
            describedBy: "`coffer key export-root`")
        try expect([try run(["key", "list", keyed])], describedBy: "`coffer key list`")
        let rebuilt = try run(
            [
                "key", "rebuild", keyed, "--root-backup-file", path("root"), "--new-key-file",
                path("file"),
            ])
        try expect(
            [
                try run(
                    ["key", "restore", path("copy"), keyed, "--dry-run"]
                        + ["--key-file", path("file")])
            ], describedBy: "`coffer key restore --dry-run`")
        let restored = try run(
            ["key", "restore", path("copy"), keyed, "--key-file", path("file")])
        try expect(
            [rebuilt, restored], describedBy: "`coffer key restore` and `key rebuild`")
        let kept = ["--keep", "4=" + path("words")]
        try expect(
            [try run(["revoke", keyed, "3", "--key-file", path("file")] + kept)],
            describedBy: "`coffer rotate` and `coffer revoke`")
        _ = try key("add", "--recipient", path("recipient"))
        try expect([try key("remove", "4", "5")], describedBy: "`coffer key remove`")
    }

    /// What verbs write about several stores.
    private func expectLists(of keyed: String) throws {
        func run(_ arguments: [String], exitCode: Int32 = 0) throws -> Data {
            let output = try Tool.run(arguments + ["--json"], descriptors: [3: Tool.key(1)])
            #expect(output.exitCode == exitCode, "\(output.text)\(output.errorText)")
            return output.stdout
        }
        try expect(
            [try run(["rotate", keyed, "--older-than", "1d"])],
            describedBy: "`coffer rotate` for a key that is not due",
            unseen: ["isRecorded", "isWholeFile"])
        try expect(
            [try run(["rotate", keyed, "--from-epoch", "0", "--key-file", path("file")])],
            describedBy: "`coffer rotate` for a key that is not due")
        let rotate = ["rotate", keyed, store.path, "--key-file", path("file")]
        let rotated = try run(rotate + ["--report", path("report")], exitCode: 3)
        try expect([rotated], describedBy: "`coffer rotate` and `coffer revoke` for several stores")
        let line = "A line of `coffer rotate --report`"
        try expect(
            Data(contentsOf: URL(filePath: path("report"))).split(separator: 10).map { Data($0) },
            describedBy: line, unseen: ["freeByteCount", "expectedPause", "droppedSlots"])
        let planned = try JSONDecoder().decode(
            Tree.self, from: try run(["rotate", keyed, "--dry-run"]))
        guard case .list(let stores) = planned["stores"] else {
            Issue.record("no stores")
            return
        }
        let fields = Set(stores.flatMap { $0.fields() }.map(\.name))
        #expect(fields.isSuperset(of: ["freeByteCount", "expectedPause", "event"]))
        try expect(
            [
                try run(
                    ["verify", store.path, keyed + "?", "--stop-after-failures", "1", path("new")]
                        + ["--raw-key-fd", "3"], exitCode: 3)
            ],
            describedBy:
                "`coffer status`, `verify`, `checkpoint` and `key` for several stores",
            unseen: ["stores[].warnings[]", "stores[].hint"])
    }

    @Test func `paths are absolute, whatever the user gave`() throws {
        let script = "cd \"$1\" && shift && exec \"$@\""
        for given in ["./store.db", "store.db", ".//store.db"] {
            let output = try Tool.runProgram(
                ["sh", "-c", script, "sh", store.folder.url.path, Tool.executable.path]
                    + ["status", given, "--json"])
            let tree = try JSONDecoder().decode(Tree.self, from: output.stdout)
            #expect(tree["path"]?.text == store.folder.url.path + "/store.db")
        }
    }

    // MARK: Messages

    @Test func `an error, a warning and a note are one object on standard error`() throws {
        let key = try store.write(Data("not the passphrase".utf8), as: "key")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        let other = try store.write(Data("another".utf8), as: "other")
        let wrong = try Tool.run([
            "rekey", store.path, "--passphrase-file", key, "--new-passphrase-file", other, "--json",
        ])
        #expect(wrong.exitCode == 12)
        #expect(wrong.stdout.isEmpty)
        #expect(wrong.errorText.filter { $0 == "\n" }.count == 1, "\(wrong.errorText)")
        try Damage.flip(store.path, at: 4096 + 300)
        let damaged = try store.run("sql", ["SELECT count(*) FROM t WHERE v > 0", "--json"])
        #expect(damaged.exitCode == 14)
        try expect([wrong.stderr, damaged.stderr], describedBy: "Messages")
    }

    @Test func `a warning of a run that succeeds is one object too`() throws {
        let output = try store.run("decrypt", [path("plain.db"), "--write-plaintext", "--json"])
        #expect(output.exitCode == 0)
        let tree = try JSONDecoder().decode(Tree.self, from: output.stderr)
        #expect(tree.fields().map(\.name).sorted() == ["schema", "warnings[]"])
    }

    @Test func `an interrupted run ends with one object after its progress`() throws {
        let tool = try Tool.start(
            ["import", store.path, "-", "--format", "csv", "--table", "n", "--raw-key-fd", "3"]
                + ["--json", "--progress", "json"], descriptors: [3: Tool.key(1)])
        try tool.write(Data(("a\n" + String(repeating: "1\n", count: 600_000)).utf8))
        try tool.waitForError("\"done\"")
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 130)
        let last = try #require(output.errorText.split(separator: "\n").last)
        let tree = try JSONDecoder().decode(Tree.self, from: Data(last.utf8))
        #expect(tree["error"]?["code"]?.text == "interrupted", "\(output.errorText)")
        #expect(try store.tables() == ["t"])
    }

    @Test func `progress is lines of its own before the messages`() throws {
        let output = try store.run("verify", ["--json", "--progress", "json"])
        let lines = output.errorText.split(separator: "\n").map { Data($0.utf8) }
        #expect(!lines.isEmpty)
        // At the first line no speed is known.
        try expect(
            [lines[0]], describedBy: "Progress", unseen: ["perSecond", "secondsLeft"])
        let later = ProgressLine(
            verb: "verify", unit: "pages", done: 60, total: 110, elapsed: .seconds(10),
            doneBefore: 10)
        try expect(
            [Data(JSON.object(ProgressReporter.Line(later)).utf8)], describedBy: "Progress")
        #expect(later.perSecond == 5 && later.secondsLeft == 10)
    }

    @Test func `the first end of a run is the only one`() throws {
        // In a process of its own, because the messages are those of the process.
        let tool = try Tool.start(
            ["import", store.path, "-", "--format", "csv", "--table", "n", "--raw-key-fd", "3"]
                + ["--json"], descriptors: [3: Tool.key(1)])
        try tool.write(Data("a,b\n1\n".utf8))
        try tool.closeInput()
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect([25, 130].contains(output.exitCode))
        #expect(output.errorText.filter { $0 == "\n" }.count <= 1, "\(output.errorText)")
    }

    // MARK: Codes

    @Test func `the table of exit codes is that of the tool`() throws {
        let rows = try Repository.text("Documentation/json.md").split(separator: "\n")
            .filter { $0.wholeMatch(of: #/\| \d+ \| `\w+` \| .* \|/#) != nil }
        #expect(
            rows.map(String.init)
                == ExitStatus.allCases.map { "| \($0.rawValue) | `\($0)` | \($0.meaning) |" })
    }
}
