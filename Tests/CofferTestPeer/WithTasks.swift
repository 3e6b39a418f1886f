import Dispatch

/// Runs work with tasks from a program without, and waits for its end.
func withTasks(_ work: @escaping @Sendable () async throws -> String) throws -> String {
    let box = ResultBox()
    Task.detached {
        do { box.result = .success(try await work()) } catch { box.result = .failure(error) }
        box.isOver.signal()
    }
    box.isOver.wait()
    return try box.result.get()
}

private final class ResultBox: @unchecked Sendable {
    // Unchecked: the semaphore orders the only write before the only read.
    var result = Result<String, any Error>.success("")
    let isOver = DispatchSemaphore(value: 0)
}
