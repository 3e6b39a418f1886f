import Coffer
import Foundation

/// Shows how the journal or WAL grows to the size of the file, because the engine does not report
/// its progress.
enum RekeyProgress {
    /// Shows it while `work` runs. The line of progress is gone before this returns or throws.
    static func showing<T: Sendable>(
        _ status: StoreFileStatus, _ reporter: ProgressReporter, _ work: () async throws -> T
    ) async throws -> T {
        let progress = watch(status, reporter)
        let result: Result<T, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        progress.cancel()
        await progress.value
        return try result.get()
    }

    private static func watch(
        _ status: StoreFileStatus, _ reporter: ProgressReporter
    ) -> Task<Void, Never> {
        Task {
            defer { reporter.finish() }
            guard reporter.isShown else { return }
            // The journal is deleted at the end, but the progress must not go back.
            var most = 0
            while !Task.isCancelled {
                // Uses only `stat`, because closing a descriptor of the file would drop SQLite's
                // locks.
                let written = ["-wal", "-journal"].map { suffix in
                    let facts = try? FileManager.default.attributesOfItem(
                        atPath: status.path + suffix)
                    return facts?[.size] as? Int ?? 0
                }
                most = max(most, min(written.max() ?? 0, status.byteCount))
                reporter.update(most, of: status.byteCount)
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
