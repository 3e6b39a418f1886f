import Coffer
import Foundation
import Workload

/// The key file that opens the stores with a keyring.
private let keyFile = [UInt8](repeating: 42, count: 32)

/// Opens a store by a slot of its keyring.
private func keyringStore() throws -> Store {
    let path = next()
    var configuration = configuration(next())
    configuration.busyTimeout = .seconds(300)
    configuration.maximumCacheByteCount = 1 << 16
    configuration.maximumRotationPause = .seconds(600)
    return try Store(
        path: path, key: .keyring(.keyFile(keyFile)), mode: .mustExist,
        configuration: configuration)
}

/// Writes to a ledger as one worker, without end, and prints the number of each write that
/// returned.
func writeWhileRotated() throws {
    let worker = Int(next()) ?? 0
    let store = try keyringStore()
    let first = try store.read { tx in try Ledger.contents(tx).count(of: worker) } + 1
    say("ready")
    for number in first... {
        let entry = Ledger.Entry(worker: worker, number: number)
        try store.write { tx in try Ledger.post(entry, tx) }
        say("\(number)")
    }
}

/// Reads a ledger without end, and prints how many entries each read saw.
func readWhileRotated() throws {
    let store = try keyringStore()
    say("ready")
    while true {
        let contents = try store.read { tx in try Ledger.contents(tx) }
        for problem in contents.problems { say("problem \(problem)") }
        say("\(contents.entries.count)")
    }
}

/// Rotates the key without end, and prints each epoch.
func rotateWithoutEnd() throws {
    let store = try keyringStore()
    say("ready")
    while true {
        do {
            let report = try store.rotate()
            say("\(report.epoch)")
            // Two rotators that never pause leave no time for anybody else.
            usleep(.random(in: 0..<200_000))
        } catch let error as StoreError where error.code == .busy {
            // A read keeps the WAL, or the other rotator is at work.
            continue
        }
    }
}

/// Replaces the root of the keyring. Drops the slots whose numbers follow, and keeps each slot of a
/// passphrase by "open sesame". Prints the id of the new root.
func replaceRoot() throws {
    let store = try keyringStore()
    let dropped = next().split(separator: ",").compactMap { KeySlot.ID($0) }
    let report = try store.replaceRootKey(dropping: dropped) { plan in
        for slot in plan.slots where slot.kind == .passphrase && !dropped.contains(slot.id) {
            try plan.keep(slot.id, .passphrase("open sesame"))
        }
    }
    say(report.rootID)
    try store.close()
}
