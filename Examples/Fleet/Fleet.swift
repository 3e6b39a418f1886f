import Coffer
import Foundation
import Report

/// Stores of three sizes, servers that write to ten of them, and a rotation of all keys that is
/// killed twice.
///
/// Run it with `make demo`, or with `Fleet COUNT` for another number of stores. It needs the tool
/// `coffer` next to itself, or in the variable `COFFER`.
@main
struct Fleet {
    static func main() throws {
        if let server = Server() { return try server.run() }
        let count = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 200
        var report = Report()
        let folder = URL.temporaryDirectory.appending(path: "coffer-fleet")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let fleet = try Stores(count: count, in: folder)
        report.lap("\(count) stores, whose keys are 100 days old")
        try rotate(fleet, &report)
        try? FileManager.default.removeItem(at: folder)
        report.end()
    }

    private static func rotate(_ stores: Stores, _ report: inout Report) throws {
        let tool = try Tool(stores)
        let servers = try stores.paths.prefix(10).map { try ServerProcess($0, stores.keyFile) }
        let planned = try tool.run(["rotate", "--older-than", "90d", "--dry-run", "--json"])
        report.check(
            "a look says that all are due", planned.counts == ["wouldRotate": stores.paths.count])

        // A rotator that is killed cannot clean up, and the runs for its stores go on without it.
        for part in [1, 2] {
            let rotator = try tool.start(Tool.rotation)
            try stores.waitForLines(stores.paths.count * 2 * part / 3)
            report.check("kill -9 ends rotator \(part)", rotator.kill())
        }
        report.check("a third one finishes", try tool.run(Tool.rotation + ["--json"]).isDone)
        report.check(
            "and a fourth one finds nothing to do",
            try tool.run(Tool.rotation + ["--json"]).counts == ["current": stores.paths.count])

        let acknowledged = try servers.map { try $0.end() }
        let found = try servers.map { try stores.count($0.path) }
        report.check("no server had an error", !acknowledged.contains(nil))
        report.check(
            "no write is lost, of \(found.reduce(0, +))",
            zip(acknowledged, found).allSatisfy { ($0 ?? .max) <= $1 })
        let verified = try tool.run(
            ["verify", "--jobs", "2", "--json", "--key-file", stores.keyFile])
        report.check("every page of every store is authentic", verified.isDone)
        try show(stores, &report)
    }

    /// What an auditor reads.
    private static func show(_ stores: Stores, _ report: inout Report) throws {
        let lines = try stores.lines()
        let changes = lines.filter { ["rotated", "foundRotated"].contains($0.event) }
        for event in ["started", "rotated", "foundRotated", "current", "failed"] {
            report.item("lines \(event)", "\(lines.count { $0.event == event })")
        }
        let pauses = changes.compactMap(\.pause).sorted()
        report.item("longest pause of writes", pauses.last.map { "\($0) s" } ?? "none")
        report.check(
            "each store has one line that claims a change",
            changes.count == stores.paths.count
                && Set(changes.map(\.path)) == Set(stores.paths))
    }
}
