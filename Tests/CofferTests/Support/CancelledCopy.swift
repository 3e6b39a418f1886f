import Synchronization

@testable import Coffer

/// Starts a copy, cancels its task when it reaches a step, and returns its error.
func cancelled(
    at step: CopyProgress.Step,
    _ copy: @escaping @Sendable (@escaping @Sendable (CopyProgress) -> Void) async throws -> Void
) async -> (any Error)? {
    let hold = Hold()
    let isHeld = Atomic(false)
    let task = Task {
        // A copy that ends without that step must end the wait for it.
        defer { if !isHeld.exchange(true, ordering: .relaxed) { hold.pass() } }
        try await copy { progress in
            guard progress.step == step, !isHeld.exchange(true, ordering: .relaxed) else { return }
            hold.stay()
        }
    }
    await hold.isEntered()
    task.cancel()
    hold.release()
    do {
        try await task.value
        return nil
    } catch {
        return error
    }
}
