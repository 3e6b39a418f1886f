// error: cannot pass function of type '@Sendable (inout WriteTransaction) async throws -> ()'
import Coffer

func wait(in store: Store) async throws {
    try await store.write { tx in try await Task.sleep(for: .seconds(1)) }
}
