import Coffer
import Foundation
import Testing

extension Trait where Self == ConditionTrait {
    /// Skips a test where the machine does not let a user mount a disk; in `.ci/run` it runs and
    /// fails.
    static var onSmallDisk: Self {
        .enabled(if: Repository.isCI || SmallDisk.isAvailable, "a user may mount no disk here")
    }
}

/// A separate file system that is nearly full, where the machine lets a user make one.
enum SmallDisk {
    fileprivate static let isAvailable: Bool = {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        do { try process.run() } catch { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Runs a verb of the peer on a store of 2 000 rows whose disk has 100 kB left.
    static func run(
        _ folder: TemporaryFolder, _ verb: String, _ mode: Configuration.JournalMode
    ) throws -> [String] {
        let path = folder.path("small.db")
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for _ in 0..<2000 {
                try connection.execute(
                    "INSERT INTO t(v) VALUES (\([UInt8](repeating: 7, count: 300)))")
            }
        }
        connection.close()
        let mount = folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let byteCount = try Damage.byteCount(path) + 100_000
        let script = """
            mount -t tmpfs -o size=\(byteCount) tmpfs "$1" && cp "$2" "$1/small.db" && shift 2 \
            && exec "$@"
            """
        return try Peer.run(
            [verb, mode.description, mount + "/small.db", "1", "2"],
            under: ["unshare", "-Urm", "sh", "-c", script, "sh", mount, path])
    }

    /// Runs a program of the peer where `$mount` is a disk of this size.
    static func run(
        _ folder: TemporaryFolder, byteCount: Int, _ arguments: (_ mount: String) -> [String]
    ) throws -> [String] {
        let mount = folder.path("mount")
        try FileManager.default.createDirectory(atPath: mount, withIntermediateDirectories: true)
        let script = "mount -t tmpfs -o size=\(byteCount) tmpfs \"$1\" && shift && exec \"$@\""
        return try Peer.run(
            arguments(mount), under: ["unshare", "-Urm", "sh", "-c", script, "sh", mount])
    }
}
