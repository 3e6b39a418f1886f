import CFaultVFS
import Foundation

@testable import Coffer

/// The store to compact, on the disk `vfs`. The journal mode `memory` is for tests of
/// tests: a kill takes the journal with it. SQLCipher 4 refuses `OFF` to Coffer's connections.
private func storeToCompact(vfs: String? = nil) throws -> Store {
    let mode = next()
    var configuration = configuration(mode == "memory" ? "delete" : mode)
    if mode == "memory" {
        configuration.prepare = { connection in
            try connection.current().run("PRAGMA journal_mode = MEMORY")
        }
    }
    // So small that pages reach the disk before the end.
    configuration.maximumCacheByteCount = 1
    configuration.vfs = vfs
    return try Store(
        path: next(), key: nextKey(), mode: .mustExist, configuration: configuration)
}

/// Compacts a store when a line comes.
func compact() throws -> String {
    let store = try storeToCompact()
    say("ready")
    waitForInput()
    try store.compact()
    return "compacted"
}

/// Compacts a store, and stops once in the middle until a line comes.
func compactHeld() throws -> String {
    let store = try storeToCompact()
    // One thread calls it.
    nonisolated(unsafe) var isWaiting = true
    try store.compact { progress in
        guard isWaiting, progress.step == .verifyingRows else { return }
        isWaiting = false
        say("ready")
        waitForInput()
    }
    return "compacted"
}

/// Compacts a store, and stops at each report of progress, which it prints, until a line comes.
func compactStepwise() throws -> String {
    try storeToCompact().compact { progress in
        say("\(progress.step) \(progress.count) \(progress.countTotal)")
        waitForInput()
    }
    return "compacted"
}

/// Compacts a store on a disk that kills this process before one of its operations; a negative
/// number kills nothing. Prints the number of operations.
func compactStruck() throws -> String {
    let skipCount = Int64(next()) ?? -1
    // Asked first, because it configures the engine, which a disk would start.
    _ = try Engine.capabilities
    guard let disk = fault_disk_create() else { return "no disk" }
    let kinds = UInt32(fault_changing.rawValue)
    let store = try storeToCompact(vfs: String(cString: fault_disk_name(disk)))
    let before = fault_disk_operation_count(disk, kinds)
    if skipCount >= 0 { fault_disk_arm(disk, kinds, skipCount, 1, fault_kill, 0) }
    try store.compact()
    say("\(fault_disk_operation_count(disk, kinds) - before)")
    return "compacted"
}

/// Runs the engine's VACUUM, and stops at its commit until a line comes.
func vacuumHeld() throws -> String {
    // Asked first, because it configures the engine, which a disk would start.
    _ = try Engine.capabilities
    guard let disk = fault_disk_create() else { return "no disk" }
    var configuration = configuration("delete")
    configuration.maximumCacheByteCount = 1
    configuration.vfs = String(cString: fault_disk_name(disk))
    let connection = try Connection(
        path: next(), key: nextKey(), mode: .mustExist, configuration: configuration)
    fault_disk_hold_main_syncs(disk)
    // nonisolated(unsafe): this thread waits for the other before it ends.
    nonisolated(unsafe) let disks = disk
    let watch = Thread {
        while fault_disk_held_count(disks) == 0 { usleep(1000) }
        say("ready")
        waitForInput()
        fault_disk_release(disks)
    }
    watch.start()
    try connection.execute("VACUUM")
    return "vacuumed"
}

/// Sorts more than the cache holds, with temporary files, which Coffer never allows, and stops
/// after the first row until a line comes.
func sortOnDisk() throws -> String {
    let connection = try connection(next())
    let handle = try connection.current()
    handle.authorizer.isCoffer = true
    try handle.run("PRAGMA temp_store = FILE; PRAGMA cache_size = 20")
    let cursor = try connection.cursor("SELECT v, w FROM t ORDER BY v || w DESC")
    _ = try cursor.step()
    say("ready")
    waitForInput()
    return "sorted"
}
