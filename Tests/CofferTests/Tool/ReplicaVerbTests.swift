import CofferReplica
import Foundation
import Testing

@testable import Coffer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `coffer replicate`, `replicas`, `replica`, and `restore` of a remote.
@Suite(.againstHanging, .onOwnThreads) struct ReplicaVerbTests {
    private let store: ToolStore
    private let remote: String

    init() throws {
        store = try ToolStore()
        remote = store.folder.path("remote")
        try FileManager.default.createDirectory(
            atPath: remote, withIntermediateDirectories: false)
        try store.execute("CREATE TABLE t(v)", "INSERT INTO t VALUES (1)")
    }

    private func path(_ name: String) -> String { store.folder.path(name) }

    private func coffer(
        _ arguments: String..., key: UInt8 = 1, environment: [String: String] = [:]
    ) throws -> Tool.Output {
        try Tool.run(
            arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(key)],
            environment: environment)
    }

    /// Sends what was committed, and returns the position.
    private func send() throws -> String {
        let output = try coffer("replicate", store.path, remote, "--once", "--json")
        try #require(output.exitCode == 0, "\(output.errorText)")
        return try #require(try object(output.stdout)["position"] as? String)
    }

    private func object(_ data: Data) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    private func values(_ path: String) throws -> [Int] {
        let connection = try Connection(
            path: path, key: .numbered(1), mode: .mustExist, configuration: .testing(.existing))
        defer { connection.close() }
        return try connection.rows("SELECT v FROM t ORDER BY v").map { try $0.get(0) }
    }

    // MARK: Sending and restoring

    @Test func `each commit that was sent can be restored`() throws {
        var positions = [try send()]
        for number in 2...3 {
            try store.execute("INSERT INTO t VALUES (\(number))")
            positions.append(try send())
        }
        let listed = try coffer("replicas", remote, "--all", "--json")
        let commits = try #require(try object(listed.stdout)["commits"] as? [[String: Any]])
        let found = commits.compactMap { $0["position"] as? String }
        // A run that goes on has a position at its beginning too.
        #expect(found.filter { !$0.contains("/0-") } == positions && found.count == 5)
        for (index, position) in positions.enumerated() {
            let copy = path("copy-\(index)")
            let output = try coffer("restore", remote, copy, "--position", position)
            #expect(output.exitCode == 0, "\(output.errorText)")
            #expect(try values(copy) == Array(1...index + 1))
        }
        let newest = try coffer("restore", remote, path("newest"), "--at-least", positions[2])
        #expect(newest.text.contains("position: \(positions[2]), sent at "), "\(newest.text)")
        #expect(try values(path("newest")) == [1, 2, 3])
    }

    @Test func `a run that finds nothing new writes nothing`() throws {
        let first = try send()
        func objects() throws -> [String] {
            try FileManager.default.subpathsOfDirectory(atPath: remote).sorted()
        }
        let before = try objects()
        let again = try coffer("replicate", store.path, remote, "--once", "--json")
        let event = try object(again.stdout)
        #expect(event["event"] as? String == "unchanged")
        #expect(event["position"] as? String == first)
        #expect(try objects() == before)
        let text = try coffer("replicate", store.path, remote, "--once")
        #expect(text.text.contains("nothing was committed since the last run"), "\(text.text)")
        try store.execute("INSERT INTO t VALUES (2)")
        #expect(try send() != first)
        #expect(try objects().count > before.count)
    }

    @Test func `a time names the last commit before it`() throws {
        _ = try send()
        try store.execute("INSERT INTO t VALUES (2)")
        _ = try send()
        let all = try coffer("restore", remote, path("all"), "--at", "2099-01-01T01:00:00+01:00")
        #expect(all.exitCode == 0, "\(all.errorText)")
        #expect(try values(path("all")) == [1, 2])
        let none = try coffer("restore", remote, path("none"), "--at", "2001-01-01T00:00:00Z")
        #expect(none.exitCode == 10, "\(none.errorText)")
        for text in ["noon", "2026-11-28", "2026-11-28T12:00:00"] {
            let output = try coffer("restore", remote, path("none"), "--at", text)
            #expect(output.exitCode == 2, "\(text): \(output.text)")
            #expect(output.errorText.contains("2026-11-28T12:00:00Z"), "\(output.errorText)")
        }
        #expect(!FileManager.default.fileExists(atPath: path("none")))
    }

    @Test func `restore never overwrites a file, and takes a backup at one moment only`() throws {
        _ = try send()
        let taken = try coffer("restore", remote, store.path)
        #expect(taken.exitCode == 22, "\(taken.errorText)")
        #expect(try values(store.path) == [1])
        #expect(try coffer("backup", store.path, path("backup")).exitCode == 0)
        let output = try coffer(
            "restore", path("backup"), path("copy"), "--position", "1/1-0123456789abcdef")
        #expect(output.exitCode == 2, "\(output.errorText)")
        #expect(output.errorText.contains("one moment only"), "\(output.errorText)")
    }

    @Test func `replica verify restores everything and leaves no file`() throws {
        let position = try send()
        let folder = path("temporary")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let good = try coffer("replica", "verify", remote, environment: ["TMPDIR": folder])
        #expect(good.exitCode == 0, "\(good.errorText)")
        #expect(good.text.contains(position))
        // The last byte of the record that has the pages.
        let record = "\(remote)/log/0000000000000001/0000000000000001"
        let handle = try FileHandle(forUpdating: URL(filePath: record))
        try handle.seek(toOffset: try handle.seekToEnd() - 1)
        let last = try #require(try handle.readToEnd()?.first)
        try handle.seek(toOffset: try handle.seekToEnd() - 1)
        try handle.write(contentsOf: [last ^ 1])
        try handle.close()
        let bad = try coffer("replica", "verify", remote, environment: ["TMPDIR": folder])
        #expect(bad.exitCode == 14, "\(bad.errorText)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }

    @Test func `a record that is missing is no shorter history`() throws {
        for number in 2...4 {
            _ = try send()
            try store.execute("INSERT INTO t VALUES (\(number))")
        }
        // Terms 1 and 2 have a begin, a commit, the end and a takeover.
        for name in ["0000000000000001/0000000000000001", "0000000000000002/0000000000000003"] {
            let (record, away) = ("\(remote)/log/\(name)", path("away"))
            try FileManager.default.moveItem(atPath: record, toPath: away)
            let output = try coffer("replicas", remote)
            #expect(output.exitCode == 14, "\(name): \(output.text)\(output.errorText)")
            try FileManager.default.moveItem(atPath: away, toPath: record)
        }
        #expect(try coffer("replicas", remote).exitCode == 0)
    }

    @Test func `a forged file of tags is not believed`() throws {
        _ = try send()
        // As a kill before the first pages leaves it.
        for number in 1...2 {
            try FileManager.default.removeItem(
                atPath: "\(remote)/log/0000000000000001/000000000000000\(number)")
        }
        let folder = store.folder.url.path
        let tags = try #require(
            try FileManager.default.contentsOfDirectory(atPath: folder).first {
                $0.contains("-tags-")
            })
        let bytes = try Data(contentsOf: URL(filePath: path(tags)))
        try (bytes.prefix(24) + Data(repeating: 0, count: 4)).write(to: URL(filePath: path(tags)))
        let sent = try coffer(
            "replicate", store.path, remote, "--once", "--interval", "1s", "--take-over-from",
            "\(ProcessInfo.processInfo.hostName):\(store.path)")
        #expect(sent.exitCode == 0, "\(sent.errorText)")
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
        #expect(try values(path("copy")) == [1])
    }

    // MARK: The service

    @Test func `replicate sends until a signal, and then what is left`() throws {
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1h", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        try tool.waitForError("has everything up to")
        try store.execute("INSERT INTO t VALUES (2)")
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("stopping"), "\(output.errorText)")
        #expect(output.text.contains("position:"), "\(output.text)")
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
        #expect(try values(path("copy")) == [1, 2])
    }

    @Test func `each event is a line of JSON, and a supervisor learns when it is ready`() throws {
        let socket = try NotifySocket(path("notify"))
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1s", "--json", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], environment: ["NOTIFY_SOCKET": path("notify")])
        #expect(socket.message() == "EXTEND_TIMEOUT_USEC=30000000")
        #expect(socket.message() == "READY=1")
        try store.execute("INSERT INTO t VALUES (2)")
        let second = "\(remote)/log/0000000000000001/0000000000000002"
        try waitUntil { FileManager.default.fileExists(atPath: second) }
        tool.send(SIGINT)
        let output = try tool.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
        let events = try output.stdout.split(separator: 10).map { try object(Data($0)) }
        let names = events.compactMap { $0["event"] as? String }
        #expect(names.first == "ready" && names.last == "stopped", "\(names)")
        #expect(Set(names).isSubset(of: ["ready", "sent", "stopped"]))
        #expect(events.allSatisfy { $0["schema"] as? Int == 1 })
        #expect(events.first?["position"] as? String != events.last?["position"] as? String)
        #expect(socket.message() == "STOPPING=1")
    }

    @Test func `a supervisor that reloads the service has everything sent at once`() throws {
        let socket = try NotifySocket(path("notify"))
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1h", "--json", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], environment: ["NOTIFY_SOCKET": path("notify")])
        #expect(socket.state() == "READY=1")
        try store.execute("INSERT INTO t VALUES (2)")
        tool.send(SIGHUP)
        let reload = socket.state()
        #expect(reload.wholeMatch(of: /RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]+/) != nil)
        #expect(socket.state() == "READY=1")
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
        #expect(try values(path("copy")) == [1, 2])
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
        let events = try output.stdout.split(separator: 10).map { try object(Data($0)) }
        #expect(events.compactMap { $0["event"] as? String } == ["ready", "sent", "stopped"])
    }

    @Test func `a reload is not done while the remote is away`() throws {
        let socket = try NotifySocket(path("notify"))
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1h", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)], environment: ["NOTIFY_SOCKET": path("notify")])
        #expect(socket.state() == "READY=1")
        // Nothing was committed, so that only a look at the remote finds out.
        try FileManager.default.moveItem(atPath: remote, toPath: remote + ".away")
        tool.send(SIGHUP)
        #expect(socket.state().hasPrefix("RELOADING=1"))
        try tool.waitForError("warning")
        try FileManager.default.moveItem(atPath: remote + ".away", toPath: remote)
        #expect(socket.state() == "READY=1")
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
    }

    @Test func `verify finds a record that is lost and that no restore needs`() throws {
        for value in 2...6 {
            _ = try send()
            try store.execute("INSERT INTO t VALUES (\(value))")
        }
        _ = try send()
        #expect(try coffer("replica", "verify", remote).exitCode == 0)
        let begins = try FileManager.default.contentsOfDirectory(atPath: remote + "/log").sorted()
        for begin in begins.dropLast() {
            let name = "\(remote)/log/\(begin)/0000000000000001"
            try FileManager.default.moveItem(atPath: name, toPath: path("kept"))
            let output = try coffer("replica", "verify", remote)
            #expect(output.exitCode == 14, "\(begin): \(output.errorText)")
            try FileManager.default.moveItem(atPath: path("kept"), toPath: name)
        }
    }

    @Test func `a run that an error ends says so as its last event`() throws {
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1s", "--json", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        let slot = "\(remote)/log/0000000000000001/000000000000000"
        try waitUntil { FileManager.default.fileExists(atPath: slot + "1") }
        // The next record finds that the one before it is gone.
        try FileManager.default.removeItem(atPath: slot + "1")
        try store.execute("INSERT INTO t VALUES (2)")
        let output = try tool.finish()
        #expect(output.exitCode == 14, "\(output.errorText)")
        let events = try output.stdout.split(separator: 10).map { try object(Data($0)) }
        #expect(events.compactMap { $0["event"] as? String }.suffix(2) == ["failed", "stopped"])
        for event in events.suffix(2) {
            let error = try #require(event["error"] as? [String: Any])
            #expect(error["reason"] as? String == "remoteDamaged")
        }
    }

    @Test func `a file for Prometheus says whether the replica is up to date`() throws {
        let file = path("replica.prom")
        func values() throws -> [String: Int] {
            let text = try String(contentsOf: URL(filePath: file), encoding: .utf8)
            #expect(text.hasPrefix("# HELP coffer_replica_run_timestamp_seconds "))
            let labels = #"{path="\#(store.path)",remote="\#(remote)"} "#
            var values: [String: Int] = [:]
            for line in text.split(separator: "\n") where !line.hasPrefix("#") {
                let parts = line.components(separatedBy: labels)
                try #require(parts.count == 2, "\(line)")
                values[String(parts[0].dropFirst("coffer_replica_".count))] = Int(parts[1])
            }
            return values
        }
        let start = Int(Date.now.timeIntervalSince1970)
        for _ in 1...2 {
            // The second run finds nothing to send.
            let output = try coffer(
                "replicate", store.path, remote, "--once", "--prometheus", file)
            #expect(output.exitCode == 0, "\(output.errorText)")
            let found = try values()
            #expect(found["ok"] == 1)
            #expect(try #require(found["sent_timestamp_seconds"]) >= start)
            #expect(try #require(found["run_timestamp_seconds"]) >= start)
        }
        let failed = try coffer(
            "replicate", store.path, remote, "--owner", "other", "--prometheus", file)
        #expect(failed.exitCode == 28, "\(failed.errorText)")
        #expect(try values()["ok"] == 0)
        // A value that this run does not know stays as it was.
        #expect(try #require(try values()["sent_timestamp_seconds"]) >= start)
        for (arguments, key, code) in [
            ([store.path, path("absent")], 1, 10), ([store.path, remote], 2, 12),
            ([path("absent.db"), remote], 1, 10),
        ] as [([String], UInt8, Int32)] {
            try? FileManager.default.removeItem(atPath: file)
            let early = try Tool.run(
                ["replicate"] + arguments
                    + ["--once", "--prometheus", file, "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(key)])
            #expect(early.exitCode == code, "\(early.errorText)")
            let text = try String(contentsOf: URL(filePath: file), encoding: .utf8)
            #expect(text.contains("\ncoffer_replica_ok{") && text.contains("} 0\n"), "\(text)")
        }
        // No other file is replaced.
        let refused = try coffer(
            "replicate", store.path, remote, "--once", "--prometheus", store.path)
        #expect(refused.exitCode == 22, "\(refused.errorText)")
    }

    @Test func `metrics that cannot be written do not end a replication`() throws {
        let file = path("metrics/replica.prom")
        try FileManager.default.createDirectory(
            atPath: path("metrics"), withIntermediateDirectories: false)
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1s", "--raw-key-fd", "3"]
                + ["--prometheus", file], descriptors: [3: Tool.key(1)])
        try tool.waitForError("has everything up to")
        try FileManager.default.removeItem(atPath: path("metrics"))
        try FileManager.default.moveItem(atPath: remote, toPath: remote + ".away")
        try store.execute("INSERT INTO t VALUES (2)")
        try tool.waitForError("the replica goes on, but")
        try FileManager.default.moveItem(atPath: remote + ".away", toPath: remote)
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
    }

    @Test func `a run after a kill waits until the killed one is surely gone, and says so`() throws
    {
        func start(_ environment: [String: String] = [:]) throws -> Tool {
            try Tool.start(
                ["replicate", store.path, remote, "--interval", "1s", "--raw-key-fd", "3"],
                descriptors: [3: Tool.key(1)], environment: environment)
        }
        let killed = try start()
        try killed.waitForError("has everything up to")
        killed.send(SIGKILL)
        _ = try killed.finish()
        let socket = try NotifySocket(path("notify"))
        let second = try start(["NOTIFY_SOCKET": path("notify")])
        try second.waitForError("has everything up to")
        second.send(SIGTERM)
        let output = try second.finish()
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("waiting up to 13 s"), "\(output.errorText)")
        // Ten seconds apart, as the supervisor shall not give up.
        for message in [String](repeating: "EXTEND_TIMEOUT_USEC=30000000", count: 2) + ["READY=1"] {
            #expect(socket.message() == message)
        }
    }

    @Test func `a second process of the machine is refused at once, and the first goes on`() throws
    {
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1h", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        try tool.waitForError("has everything up to")
        let second = try coffer("replicate", store.path, remote, "--once")
        #expect(second.exitCode == 28, "\(second.errorText)")
        #expect(second.errorText.contains("another process"), "\(second.errorText)")
        try store.execute("INSERT INTO t VALUES (2)")
        tool.send(SIGTERM)
        #expect(try tool.finish().exitCode == 0)
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
        #expect(try values(path("copy")) == [1, 2])
    }

    @Test func `a copy of the store under another name is refused after a clean end too`() throws {
        _ = try send()
        try FileManager.default.copyItem(atPath: store.path, toPath: path("staging"))
        let output = try coffer("replicate", path("staging"), remote, "--once")
        #expect(output.exitCode == 28, "\(output.errorText)")
    }

    @Test func `a second signal ends a replication whose remote is gone`() throws {
        let tool = try Tool.start(
            ["replicate", store.path, remote, "--interval", "1h", "--raw-key-fd", "3"],
            descriptors: [3: Tool.key(1)])
        try tool.waitForError("has everything up to")
        try store.execute("INSERT INTO t VALUES (2)")
        try FileManager.default.moveItem(atPath: remote, toPath: path("away"))
        tool.send(SIGTERM)
        try tool.waitForError("warning:")
        tool.send(SIGTERM)
        let output = try tool.finish()
        #expect(output.exitCode == 130, "\(output.errorText)")
        #expect(output.errorText.contains("run the same command again"), "\(output.errorText)")
        #expect(try values(store.path) == [1, 2])
    }

    // MARK: Refusals

    @Test func `another owner is refused, and taken over from by its name`() async throws {
        let (copy, other) = try await replicatingCopy(owner: "other")
        let refused = try coffer("replicate", store.path, remote, "--once")
        #expect(refused.exitCode == 28, "\(refused.errorText)")
        #expect(
            refused.errorText.contains("--take-over-from other"), "\(refused.errorText)")
        let taken = try coffer(
            "replicate", store.path, remote, "--once", "--take-over-from", "other")
        #expect(taken.exitCode == 0, "\(taken.errorText)")
        try await copy.write { tx in try tx.execute("INSERT INTO t VALUES (2)") }
        await expect(.fenced) { try await other.caughtUp() }
        try await copy.close()
    }

    /// A copy of the store that the library replicates.
    private func replicatingCopy(owner: String) async throws -> (Store, Replica) {
        try FileManager.default.copyItem(atPath: store.path, toPath: path("copy.db"))
        let copy = try await Store(
            path: path("copy.db"), key: .numbered(1), configuration: .testing())
        var options = ReplicaOptions()
        options.owner = owner
        return (copy, try await copy.replicate(to: FolderRemote(remote), options))
    }

    @Test func `an old copy is refused until its position is named`() throws {
        #expect(try coffer("checkpoint", store.path).exitCode == 0)
        let first = try send()
        try FileManager.default.copyItem(atPath: store.path, toPath: path("old"))
        try store.execute("INSERT INTO t VALUES (2)")
        _ = try send()
        removeStore(store.path)
        try FileManager.default.moveItem(atPath: path("old"), toPath: store.path)
        let refused = try coffer("replicate", store.path, remote, "--once")
        #expect(refused.exitCode == 29, "\(refused.errorText)")
        #expect(refused.errorText.contains(first), "\(refused.errorText)")
        #expect(refused.errorText.contains("--keep-file-at"), "\(refused.errorText)")
        let kept = try coffer(
            "replicate", store.path, remote, "--once", "--keep-file-at", first)
        #expect(kept.exitCode == 0, "\(kept.errorText)")
        #expect(try coffer("restore", remote, path("copy")).exitCode == 0)
        #expect(try values(path("copy")) == [1])
    }

    @Test func `a remote that cannot be used says why, and what to do`() throws {
        let empty = try coffer("replicas", remote)
        #expect(empty.exitCode == 10, "\(empty.errorText)")
        _ = try send()
        let wrongKey = try coffer("replicas", remote, key: 2)
        #expect(wrongKey.exitCode == 12, "\(wrongKey.errorText)")
        let missing = try coffer("replicate", store.path, path("missing"), "--once")
        #expect(missing.exitCode == 10, "\(missing.errorText)")
        let service = "http://127.0.0.1:1/bucket/prefix"
        let keyless = try coffer("replicate", store.path, service, "--once")
        #expect(keyless.exitCode == 2, "\(keyless.errorText)")
        #expect(keyless.errorText.contains("--credentials-file"), "\(keyless.errorText)")
        let credentials = path("credentials")
        try Data("[default]\naws_access_key_id = a\naws_secret_access_key = b\n".utf8)
            .write(to: URL(filePath: credentials))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: credentials)
        let check = ["replica", "check"]
        let absent = try Tool.run(check + [service, "--credentials-file", credentials])
        #expect(absent.exitCode == 27, "\(absent.errorText)")
        let useless = try Tool.run(check + [remote, "--credentials-file", credentials])
        #expect(useless.exitCode == 2, "\(useless.errorText)")
        let fit = try Tool.run(check + [remote])
        #expect(fit.exitCode == 0 && !fit.errorText.contains("warning"), "\(fit.errorText)")
        #expect(fit.text.contains("a replica"), "\(fit.text)")
        try Data().write(to: URL(filePath: remote + "/notes.txt"))
        let shared = try Tool.run(check + [remote])
        #expect(shared.exitCode == 0, "\(shared.errorText)")
        #expect(shared.errorText.contains("such as notes.txt"), "\(shared.errorText)")
    }

    @Test func `purge deletes nothing of a young replica, and says so`() throws {
        _ = try send()
        let output = try coffer("replica", "purge", remote)
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.text.contains("0 objects"), "\(output.text)")
        #expect(try coffer("replica", "verify", remote).exitCode == 0)
        let few = try coffer("replicate", store.path, remote, "--once", "--keep-snapshots", "1")
        #expect(few.exitCode == 2, "\(few.errorText)")
    }

    @Test func `a restore tells its progress`() throws {
        _ = try send()
        let output = try coffer("restore", remote, path("copy"), "--progress", "json")
        #expect(output.exitCode == 0, "\(output.errorText)")
        #expect(output.errorText.contains("\"unit\":\"pages\""), "\(output.errorText)")
    }

    // MARK: Keyrings

    private func run(_ arguments: [String], exitCode: Int32 = 0) throws -> Tool.Output {
        let output = try Tool.run(arguments)
        try #require(output.exitCode == exitCode, "\(arguments): \(output.errorText)")
        return output
    }

    @Test func `each kind of credential restores a store with a keyring, and rotations too`() throws
    {
        let keyed = path("keyed")
        try Data(repeating: 1, count: 32).write(to: URL(filePath: path("file")))
        let first = ["--key-file", path("file")]
        _ = try run(["init", keyed, "--keyring", "--no-recovery-key"] + first)
        let recipient = try run(["key", "make-identity", path("identity")])
        try Data(recipient.stdout).write(to: URL(filePath: path("recipient")))
        _ = try run(["key", "add", keyed, "--recipient", path("recipient")] + first)
        // The service reverses 32 bytes.
        let reversed = "perl -0777 -pe '$_ = reverse $_'"
        _ = try run(
            [
                "key", "add", keyed, "--wrap-command", reversed, "--new-unwrap-command", reversed,
            ] + first)
        _ = try run(["sql", keyed, "CREATE TABLE t(v)", "--write"] + first)
        let sent = try run(["replicate", keyed, remote, "--once", "--json"] + first)
        let position = try #require(try object(sent.stdout)["position"] as? String)
        _ = try run(["rotate", keyed] + first)
        _ = try run(["sql", keyed, "INSERT INTO t VALUES (1)", "--write"] + first)
        _ = try run(["replicate", keyed, remote, "--once"] + first)

        for (index, credential) in [
            first, ["--identity-file", path("identity")], ["--unwrap-command", reversed],
        ].enumerated() {
            let copy = path("copy-\(index)")
            let restored = try run(["restore", remote, copy] + credential)
            #expect(restored.text.contains("\(copy).keyring, with"), "\(restored.text)")
            // Everybody can seal a keyring to a public key.
            let warns = restored.errorText.contains("--at-least")
            #expect(warns == (credential != first), "\(restored.errorText)")
            let rows = try run(["sql", copy, "SELECT v FROM t"] + credential)
            #expect(rows.text.contains("1"), "\(rows.text)")
        }
        let old = try run(
            ["restore", remote, path("old"), "--at-least", position, "--position", position]
                + ["--identity-file", path("identity")])
        #expect(!old.errorText.contains("prove"), "\(old.errorText)")
        #expect(old.errorText.contains("before a rotation"), "\(old.errorText)")
        _ = try run(["verify", path("old")] + first)
        _ = try run(["replicas", remote] + first)
        _ = try run(["replica", "verify", remote] + first)
        _ = try run(["replica", "purge", remote] + first)
        let check = try run(["replica", "check", remote])
        #expect(!check.errorText.contains("other objects"), "\(check.errorText)")
        #expect(check.text.contains("slot 2:  recipient"), "\(check.text)")
        try FileManager.default.removeItem(atPath: remote + "/keyring")
        let lost = try run(["replica", "check", remote])
        #expect(lost.errorText.contains("lost the keyring"), "\(lost.errorText)")
    }

    @Test func `a credential of no slot, a raw key and a credential without keyring are refused`()
        throws
    {
        for number in UInt8(1)...2 {
            try Data(repeating: number, count: 32).write(to: URL(filePath: path("file-\(number)")))
        }
        let (first, other) = (["--key-file", path("file-1")], ["--key-file", path("file-2")])
        _ = try run(["init", path("keyed"), "--keyring", "--no-recovery-key"] + first)
        _ = try run(["replicate", path("keyed"), remote, "--once"] + first)
        let unknown = try run(["restore", remote, path("copy")] + other, exitCode: 12)
        #expect(unknown.errorText.contains("coffer replica check"), "\(unknown.errorText)")
        let raw = try run(
            ["restore", remote, path("copy"), "--raw-key-file", path("file-1")], exitCode: 12)
        #expect(raw.errorText.contains("keyring"), "\(raw.errorText)")
        let plain = path("plain-remote")
        try FileManager.default.createDirectory(atPath: plain, withIntermediateDirectories: false)
        #expect(try coffer("replicate", store.path, plain, "--once").exitCode == 0)
        _ = try run(["replicas", plain] + first, exitCode: 16)
    }

    @Test(.enabled(if: S3Server.url != nil || Repository.isCI))
    func `a bucket is a remote like a folder`() throws {
        let bucket = try #require(S3Server.url) + "/tool-\(UInt64.random(in: 0 ... .max))"
        let service = ["--credentials-file", try #require(S3Server.credentials)]
        let key = ["--raw-key-fd", "3"]
        func run(_ arguments: [String]) throws -> Tool.Output {
            try Tool.run(arguments + service, descriptors: [3: Tool.key(1)])
        }
        #expect(try run(["replica", "check", bucket]).exitCode == 0)
        let sent = try run(["replicate", store.path, bucket, "--once"] + key)
        #expect(sent.exitCode == 0, "\(sent.errorText)")
        let restored = try run(["restore", bucket, path("copy")] + key)
        #expect(restored.exitCode == 0, "\(restored.errorText)")
        #expect(try values(path("copy")) == [1])
    }
}

/// A socket on which a supervisor waits for a program to be ready.
private final class NotifySocket {
    private let descriptor: Int32

    init(_ path: String) throws {
        #if canImport(Glibc)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        #else
        descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(code == 0)
    }

    deinit { close(descriptor) }

    /// Waits for the next message that tells a state. Skips messages that only extend a timeout.
    func state() -> String {
        var message = message()
        while message.hasPrefix("EXTEND_TIMEOUT_USEC") { message = self.message() }
        return message
    }

    /// Waits for a message.
    func message() -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
