import Coffer
import CofferReplica
import Dispatch
import Foundation

/// Writes numbered rows to a store and copies them to a folder, until it is killed. Prints
/// `told N POSITION` when rows 1 to N are in the folder.
///
/// - Parameter tellsEarly: For tests of tests: it prints before the folder has them.
func replicate(_ store: Store, to folder: String, tellsEarly: Bool) throws -> String {
    let ended = DispatchSemaphore(value: 0)
    let failure = FailureBox()
    Task.detached {
        do {
            try await replicate(store, FolderRemote(folder), tellsEarly)
        } catch {
            failure.text = "\(error)"
        }
        ended.signal()
    }
    ended.wait()
    return failure.text.replacingOccurrences(of: "\n", with: " ")
}

private final class FailureBox: @unchecked Sendable {
    // Unchecked: the semaphore orders the only write before the only read.
    var text = ""
}

private func replicate(
    _ store: Store, _ remote: FolderRemote, _ tellsEarly: Bool
) async throws {
    var options = ReplicaOptions()
    options.interval = .seconds(3600)
    options.owner = "peer"
    // The one that was killed surely writes no more.
    options.takesOverFrom = "peer"
    let replica = try await store.replicate(to: remote, options)
    var number = try await store.read { tx in
        try tx.firstRow("SELECT coalesce(max(n), 0) FROM t")?.get(0, as: Int.self) ?? 0
    }
    say("ready")
    while true {
        for _ in 0..<Int.random(in: 1...4) {
            number += 1
            let byteCount = Int.random(in: 10...9000)
            try await store.write { [number] tx in
                try tx.execute("INSERT INTO t VALUES (\(number), randomblob(\(byteCount)))")
                try tx.execute("UPDATE t SET b = randomblob(700) WHERE n = \(number / 2)")
            }
        }
        if tellsEarly { say("told \(number) -") }
        let position = try await replica.caughtUp()
        if !tellsEarly { say("told \(number) \(position)") }
    }
}
