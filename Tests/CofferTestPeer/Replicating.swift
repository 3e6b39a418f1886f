import Foundation
import Workload

@testable import Coffer
@testable import CofferReplica

/// Writes numbered rows to a store and copies them to a folder, until it is killed. Prints
/// `told N POSITION` when rows 1 to N are in the folder.
///
/// - Parameters:
///   - work: Does it beside, if it is not `plain`.
///   - tellsEarly: For tests of tests: it prints before the folder has them.
func replicate(
    _ store: Store, to folder: String, _ work: ReplicatorWork, tellsEarly: Bool
) throws -> String {
    do {
        return try withTasks {
            switch work {
            case .maintained:
                try await replicate(store, FastRemote(folder), work, tellsEarly)
            case .plain, .keyring:
                try await replicate(store, FolderRemote(folder), work, tellsEarly)
            }
            return ""
        }
    } catch {
        return "\(error)".replacingOccurrences(of: "\n", with: " ")
    }
}

private func replicate(
    _ store: Store, _ remote: any Remote, _ work: ReplicatorWork, _ tellsEarly: Bool
) async throws {
    var options = ReplicaOptions()
    options.interval = .seconds(3600)
    options.owner = "peer"
    // The one that was killed surely writes no more.
    options.takesOverFrom = "peer"
    if work == .maintained { options.makesSnapshotsFast() }
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
        // Beside the passes.
        if work == .maintained { Task { try? await replica.maintain() } }
        if work == .keyring { try await changeKey(of: store) }
        if tellsEarly { say("told \(number) -") }
        let position = try await replica.caughtUp()
        if !tellsEarly { say("told \(number) \(position)") }
    }
}

/// Rotates the key, or changes the slots of the keyring, or does neither.
private func changeKey(of store: Store) async throws {
    switch Int.random(in: 0..<6) {
    case 0: try await store.rotate()
    case 1:
        let keys = store.keys
        if let slot = try keys.slots.first(where: { $0.label == "2" }) {
            try await keys.remove(slot.id)
        } else {
            _ = try await keys.add(KeyringVerb.slot(2), label: "2")
        }
    default: break
    }
}

/// A folder whose clock is fast: a day goes by in some 170 ms.
private struct FastRemote: Remote {
    private let folder: FolderRemote
    private static let factor = 500_000.0
    /// An arbitrary time before all runs.
    private static let start = Date(timeIntervalSince1970: 1_790_000_000)

    init(_ path: String) throws {
        folder = try FolderRemote(path)
    }

    var place: String { folder.place }

    private func fast<T>(_ answer: RemoteAnswer<T>) -> RemoteAnswer<T> {
        RemoteAnswer(answer.value, time: answer.time.map(Self.fast))
    }

    static func fast(_ time: Date) -> Date {
        start + time.timeIntervalSince(start) * factor
    }

    static func fast(
        _ instant: ContinuousClock.Instant, since: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        since + (instant - since) * factor
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation> {
        fast(try await folder.create(name, bytes))
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        fast(try await folder.read(name, range))
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await folder.names(withPrefix: prefix, after: name)
    }

    func delete(_ name: String) async throws { try await folder.delete(name) }
}

extension ReplicaOptions {
    fileprivate mutating func makesSnapshotsFast() {
        (keptSnapshotCount, keptHistorySnapshotCount) = (4, 2)
        let start = ContinuousClock.now
        currentInstant = { FastRemote.fast(.now, since: start) }
        currentDate = { FastRemote.fast(.now) }
    }
}
