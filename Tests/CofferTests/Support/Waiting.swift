import Foundation
import Testing

@testable import Coffer

/// Checks every millisecond until a condition holds, where there is no task to signal it.
///
/// Waits ten minutes at most, because a test's time limit ends no thread.
func waitUntil(
    sourceLocation: SourceLocation = #_sourceLocation, _ holds: () -> Bool
) throws {
    let end = ContinuousClock.now + .seconds(600)
    while !holds() {
        try #require(ContinuousClock.now < end, "it never came", sourceLocation: sourceLocation)
        usleep(1000)
    }
}

/// Lets other tasks run while a condition holds, where nothing announces its end.
///
/// Waits ten minutes at most: a test's time limit cancels a task, which does not end a loop.
func yieldWhile(
    isolation: isolated (any Actor)? = #isolation,
    sourceLocation: SourceLocation = #_sourceLocation, _ holds: () async -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(600)
    while await holds() {
        try #require(ContinuousClock.now < end, "it never ended", sourceLocation: sourceLocation)
        await Task.yield()
    }
}

/// The code of the error that a task ended with; `nil` if it returned.
func code(_ task: Task<some Sendable, any Error>) async -> StoreError.Code? {
    if case .failure(let error) = await task.result { return (error as? StoreError)?.code }
    return nil
}

/// Whether nobody holds the write gate.
func canWrite(_ store: Store) -> Bool {
    (try? store.write(timeout: .zero) { _ in }) != nil
}

/// Waits until a condition holds that nothing announces.
///
/// Checks at least a thousand times: among a thousand concurrent tests, a minute may pass between
/// two checks.
///
/// - Returns: `false` if the condition does not hold within a minute.
func comes(_ condition: () throws -> Bool) async rethrows -> Bool {
    let deadline = ContinuousClock.now + .seconds(60)
    var lookCount = 0
    while try !condition() {
        guard lookCount < 1000 || ContinuousClock.now < deadline else { return false }
        lookCount += 1
        try? await Task.sleep(for: .milliseconds(1))
    }
    return true
}
