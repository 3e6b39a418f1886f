// How much memory a replica needs for a transaction that is much larger than all it may keep. It is
// measured for the whole process, and all tests share one process.

import Foundation
import Workload

@testable import Coffer
@testable import CofferReplica

/// Replicates a store, writes one large transaction to it, sends and restores it. Prints by how
/// many MB sending and restoring have raised the highest memory, and how many rows came back.
func replicateLarge() throws -> String {
    let (mode, path, folder) = (next(), next(), next())
    let rowCount = Int(next()) ?? 0
    return try withTasks {
        let store = try await Store(
            path: path, key: KeyringVerb.key(0), configuration: configuration(mode))
        try await store.write { tx in try tx.execute("CREATE TABLE t(v)") }
        let remote = try FolderRemote(folder)
        var options = ReplicaOptions()
        options.interval = .seconds(3600)
        let replica = try await store.replicate(to: remote, options)
        try await store.write { tx in
            for _ in 0..<rowCount { try tx.execute("INSERT INTO t VALUES (randomblob(1000000))") }
        }
        let sent = try await raisedMemory { try await replica.caughtUp() }
        try await replica.close()
        try await store.close()
        let restored = try await raisedMemory {
            try await Store.restore(
                from: remote, to: path + "-copy", key: KeyringVerb.key(0),
                configuration: configuration(mode))
        }
        let copy = try await Store(
            path: path + "-copy", key: KeyringVerb.key(0), configuration: configuration(mode))
        let count = try await copy.read { tx in
            try tx.requireScalar("SELECT count(*) FROM t WHERE length(v) = 1000000", as: Int.self)
        }
        try await copy.close()
        return "sent \(sent >> 20) restored \(restored >> 20) rows \(count)"
    }
}

/// By how many bytes some work raises the highest memory above that of its beginning.
private func raisedMemory(_ work: () async throws -> Void) async throws -> Int {
    // From here on the highest memory is counted again.
    try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    let before = try highestMemory()
    try await work()
    return try highestMemory() - before
}
