@testable import Coffer

/// The error's code that a task ended with; `nil` if it returned.
func code(_ task: Task<some Sendable, any Error>) async -> StoreError.Code? {
    if case .failure(let error) = await task.result { return (error as? StoreError)?.code }
    return nil
}

/// Whether nobody has the turn in the write queue.
func canWrite(_ store: Store) -> Bool {
    (try? store.write(timeout: .zero) { _ in }) != nil
}
