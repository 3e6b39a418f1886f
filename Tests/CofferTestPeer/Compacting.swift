import Foundation

@testable import Coffer

/// Compacts a store after it has said that it will.
///
/// - Parameter isHeld: Whether it stops in the middle until a line comes.
func compact(isHeld: Bool) throws -> String {
    var configuration = configuration(next())
    // So small that pages reach the disk before the end.
    configuration.maximumCacheByteCount = 1
    let store = try Store(
        path: next(), key: nextKey(), mode: .mustExist, configuration: configuration)
    // One thread calls it.
    nonisolated(unsafe) var isWaiting = isHeld
    if !isHeld { say("ready") }
    try store.compact { progress in
        guard isWaiting, progress.step == .verifyingRows else { return }
        isWaiting = false
        say("ready")
        waitForInput()
    }
    return "compacted"
}
