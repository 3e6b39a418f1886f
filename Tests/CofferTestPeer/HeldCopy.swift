import Foundation

@testable import Coffer

/// Copies a store, and stops in the middle until a line comes.
func copyHeld(_ kind: String, _ path: String, _ target: String) throws -> String {
    // One thread calls it.
    nonisolated(unsafe) var isHeld = false
    let progress: @Sendable (CopyProgress) -> Void = { _ in
        guard !isHeld else { return }
        isHeld = true
        say("ready")
        waitForInput()
    }
    var configuration = Configuration()
    configuration.journalMode = .existing
    let store = try Store(
        path: path, key: nextKey(), mode: .mustExist, configuration: configuration)
    if kind == "decrypt" {
        try store.decrypt(to: target, progress: progress)
    } else {
        try store.backup(to: target, progress: progress)
    }
    return "copied"
}
