import Foundation

/// Runs blocking work on its own thread, as a program without tasks does.
func onThread(_ work: @escaping @Sendable () throws -> Void) -> Task<Void, any Error> {
    Task {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
        }
    }
}
