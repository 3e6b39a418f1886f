import Coffer
import Foundation
import Report

/// A server's state in buckets: sessions, failed logins, and jobs for several processes.
///
/// Run it with `make demo`. It makes its stores again each time, and checks what they do.
@main
struct Sessions {
    static func main() async throws {
        if let path = Worker.path { return try Worker.run(path) }
        var report = Report()
        let folder = URL.temporaryDirectory.appending(path: "coffer-sessions")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)

        let clock = HandClock()
        let store = try await Store(
            path: folder.appending(path: "server.db").path, key: .random(),
            configuration: clock.configuration)
        try await tryTokens(store, clock, &report)
        try await tryLogins(store, clock, &report)
        try await store.close()

        try tryJobs(folder.appending(path: "jobs.db").path, &report)
        try? FileManager.default.removeItem(at: folder)
        report.end()
    }

    /// Four processes book payments. One is killed with a job in its hands, and one is too slow.
    static func tryJobs(_ path: String, _ report: inout Report) throws {
        let payments = (1...120).map { number in
            JobQueue.Payment(account: ["ada", "edsger", "grace"][number % 3], cents: number)
        }
        let clock = HandClock()
        let digits = (0..<32).map { _ in String(format: "%02x", UInt8.random(in: 0...255)) }
            .joined()
        let queue = try JobQueue(path: path, key: .raw(hex: digits), clock: clock)
        try queue.add(payments)
        let workers = try (1...4).map { _ in try WorkerProcess(path: path, digits: digits) }

        let first = try count(of: "work 10", by: workers, clock)
        report.check("four processes book ten jobs each, at once", first == 40)

        // The answer comes after the claim has returned, so the lease is on disk.
        let killed = try workers[0].ask("hold")
        let slow = try workers[1].ask("hold")
        report.check("kill -9 ends a worker that holds job \(killed)", workers[0].kill())
        let others = try count(of: "work 1000", by: workers[2...], clock)
        report.check("two others book all jobs but \(killed) and \(slow)", others == 78)

        clock.advance(minutes: 0.5)
        let expired = try count(of: "work 1000", by: workers[2...], clock)
        report.check("and these when the leases have expired", expired == 2)
        let late = try workers[1].ask("finish")
        report.check("the slow worker is refused job \(slow)", late == "refused")
        let areEnded = try workers[1...].map { try $0.end() }
        report.check("the workers end without an error", areEnded == [true, true, true])

        let state = try queue.state()
        let sums = Dictionary(grouping: payments, by: \.account).mapValues { payments in
            payments.map(\.cents).reduce(0, +)
        }
        report.check("no job is lost: none is open", state.openCount == 0)
        report.check("each payment is booked exactly once", state.balances == sums)
        report.check("but the work on two was begun twice", state.claimCount == 122)
        try queue.close()
    }

    /// The sum of the workers' answers to an order that they all get at the same time.
    private static func count(
        of order: String, by workers: some Collection<WorkerProcess>, _ clock: HandClock
    ) throws -> Int {
        for worker in workers {
            try worker.send("time \(Int(clock.now.timeIntervalSince1970))")
            try worker.send(order)
        }
        return try workers.map { try Int($0.answer()) ?? 0 }.reduce(0, +)
    }
}
