import Coffer
import CofferReplica
import Foundation
import Report

/// A shop that loses its only machine, and a table by mistake, and has all of it back.
///
/// Run it with `make demo`: the remote is a folder. `Replica URL CREDENTIALS` takes the bucket of a
/// storage service, and a file with its access key.
@main
struct ReplicaExample {
    static func main() async throws {
        if let shop = try Shop() { return try await shop.run() }
        var report = Report()
        let folder = URL.temporaryDirectory.appending(path: "coffer-replica")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(
            at: folder.appending(path: "remote"), withIntermediateDirectories: true)
        let place = Place(folder)
        report.line("remote", place.words[0])

        let shop = try ShopProcess(folder.appending(path: "shop.db").path, place)
        let before = try shop.wait { $0.count >= 200 }
        report.lap("a shop takes \(before.count) orders")
        try await Task.sleep(for: .milliseconds(50))
        let noon = Date.now
        try await Task.sleep(for: .milliseconds(50))
        try shop.deleteAll()
        let after = try shop.wait {
            $0.deletedCount > 0 && $0.count >= $0.deletedCount + 100
        }
        report.check("kill -9 ends the shop", shop.kill())
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
        where name.hasPrefix("shop.db") {
            try FileManager.default.removeItem(at: folder.appending(path: name))
        }
        report.lap("\(after.deletedCount) orders deleted by mistake, and then the disk is lost")
        try await restore(place, folder, before, after, noon, &report)
        try? FileManager.default.removeItem(at: folder)
        report.end()
    }

    /// Restores the newest commit, and the last one before the mistake, and compares every order.
    private static func restore(
        _ place: Place, _ folder: URL, _ before: Told, _ after: Told, _ noon: Date,
        _ report: inout Report
    ) async throws {
        let remote = try place.remote()
        let newest = folder.appending(path: "newest.db").path
        let now = try await Store.restore(
            from: remote, to: newest, key: Shop.key(), atLeast: after.position)
        report.lap("restore the newest commit, \(now.copy.pageCount) pages")
        let orders = try await Shop.orders(newest)
        report.check(
            "each order that was told since is there, and is right",
            Set(after.deletedCount + 1...after.count).isSubset(of: orders.map(\.id))
                && orders.allSatisfy { $0.isRight && $0.id > after.deletedCount })

        let old = folder.appending(path: "noon.db").path
        let then = try await Store.restore(from: remote, to: old, key: Shop.key(), at: .time(noon))
        report.lap("restore the moment before the mistake")
        let kept = try await Shop.orders(old)
        report.check(
            "every order from before is there, and is right",
            Set(1...before.count).isSubset(of: kept.map(\.id)) && kept.allSatisfy(\.isRight))
        report.check("and that moment is the earlier one", then.position < now.position)
        let wrong = try? await Store.restore(
            from: remote, to: folder.appending(path: "wrong.db").path, key: .passphrase("guess"))
        report.check("another key restores nothing", wrong == nil)
        try await goOn(newest, remote, after: now.position, &report)
    }

    /// Replicates the restored store in place of the lost one.
    private static func goOn(
        _ path: String, _ remote: any Remote, after position: ReplicaPosition,
        _ report: inout Report
    ) async throws {
        let store = try await Store(path: path, key: Shop.key())
        try await store.write { tx in try tx.insert(Order(1_000_000)) }
        var options = ReplicaOptions()
        options.owner = "new machine"
        options.takesOverFrom = try await ReplicaHistory(of: remote, key: Shop.key()).owner
        let next = try await store.replicateOnce(to: remote, options)
        let unchanged = try await store.replicateOnce(to: remote, options)
        try await store.close()
        report.check("the restored store takes over, and goes on", position < next)
        report.check("and without a new order nothing is sent", next == unchanged)
    }
}
