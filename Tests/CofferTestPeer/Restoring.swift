import Foundation

@testable import Coffer

/// Restores a store, and is killed before the given change of a name, counted from 0.
func restoreKilled() throws -> String {
    let (path, backup) = (next(), next())
    let key = nextKey()
    var leftCount = Int(next()) ?? 0
    let restoration = Restoration(
        configuration: configuration("wal"), monitor: CopyMonitor(progress: nil)
    ) { () throws(StoreError) in
        if leftCount == 0 { kill(getpid(), SIGKILL) }
        leftCount -= 1
    }
    _ = try restoration.run(from: backup, key: key, to: path)
    return "restored"
}
