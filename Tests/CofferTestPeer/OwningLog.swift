import Foundation
import Workload

@testable import Coffer
@testable import CofferReplica

/// A folder that lets each object take the place of another.
private struct OverwritingFolder: Remote {
    let folder: FolderRemote

    var place: String { folder.place }

    func create(_ name: String, _ bytes: [UInt8]) async throws -> RemoteAnswer<RemoteCreation> {
        try await folder.delete(name)
        return try await folder.create(name, bytes)
    }

    func read(_ name: String, _ range: Range<Int>?) async throws -> RemoteAnswer<[UInt8]?> {
        try await folder.read(name, range)
    }

    func names(withPrefix prefix: String, after name: String) async throws -> [String] {
        try await folder.names(withPrefix: prefix, after: name)
    }

    func delete(_ name: String) async throws { try await folder.delete(name) }
}

/// Takes over a log in a folder again and again, and writes some records to it each time. Prints
/// the number of each record that it was told is there, then `done`, and waits for a line.
func ownLog() throws -> String {
    let isLying = next() == "lying"
    let (folder, name) = (next(), next())
    let (first, count) = (UInt32(next()) ?? 0, UInt32(next()) ?? 0)
    say(
        try withTasks {
            let keys = ReplicaKeys(
                SecretBytes([UInt8](repeating: 7, count: 32)),
                replica: [UInt8](repeating: 9, count: 16))
            let remote = try FolderRemote(folder)
            let access = RemoteAccess(
                isLying ? OverwritingFolder(folder: remote) as any Remote : remote)
            let owner = LogWriter.Owner(name: name, interval: .seconds(1))
            var number = first
            while number < first + count {
                var record = ReplicaRecord(time: .now)
                do {
                    let end = try await LogReader(access: access, keys: keys).end()
                    let writer = try await LogWriter.begin(
                        after: end, record, as: owner, access, keys)
                    guard let writer else { continue }
                    for _ in 0..<Int.random(in: 1...20) where number < first + count {
                        record.pages = [
                            .init(number: number, bytes: [UInt8](repeating: 1, count: 512)[...])
                        ]
                        number += 1
                        try await writer.append(.segment, record)
                        say("\(number - 1)")
                    }
                } catch let error as StoreError where error.code == .fenced {
                    continue
                } catch let error as StoreError where isLying && error.code != .engine {
                    // This owner does not listen to what it is told at a takeover.
                    number += 1
                }
            }
            return "done"
        })
    // While it lives no other process has its number.
    waitForInput()
    return "released"
}
