import Synchronization

/// Keeps the file of `--prometheus` up to date: one write after the other, until the last one.
final class ReplicaMetrics: Sendable {
    private struct State {
        var values: ReplicaMetricsFile.Values
        /// The values in the file, and when they were written; `nil` before the first write.
        var written: (values: ReplicaMetricsFile.Values, time: ContinuousClock.Instant)?
        var hasEnded = false
        /// Whether the last write has failed.
        var isLost = false
    }

    private let file: ReplicaMetricsFile
    /// Called with the first of several writes that fail.
    private let failed: @Sendable (any Error) -> Void
    private let state: Mutex<State>

    /// The longest time after which the file is written again.
    private static let pause = Duration.seconds(15)

    init(_ file: ReplicaMetricsFile, failed: @escaping @Sendable (any Error) -> Void) {
        (self.file, self.failed) = (file, failed)
        // Until something is known, as the last run has left it.
        state = Mutex(State(values: .init(isOK: file.former?.isOK ?? false)))
    }

    /// Changes the values, and writes the file if they are news or old.
    ///
    /// - Parameter isLast: Whether the run ends: the file is written, and never again.
    func update(isLast: Bool = false, _ change: (inout ReplicaMetricsFile.Values) -> Void) {
        let failure: (any Error)? = state.withLock { state in
            guard !state.hasEnded else { return nil }
            change(&state.values)
            state.hasEnded = isLast
            let now = ContinuousClock.now
            if let written = state.written, !isLast, now - written.time < Self.pause,
                !state.values.isNews(after: written.values)
            {
                return nil
            }
            do {
                try file.write(state.values)
                (state.written, state.isLost) = ((state.values, now), false)
                return nil
            } catch {
                defer { state.isLost = true }
                return state.isLost ? nil : error
            }
        }
        if let failure { failed(failure) }
    }

    func set(isOK: Bool, isLast: Bool = false) { update(isLast: isLast) { $0.isOK = isOK } }

    /// Writes the file from time to time until the task is cancelled: to begin may take hours.
    func tick() async {
        while !Task.isCancelled {
            update { _ in }
            try? await Task.sleep(for: Self.pause)
        }
    }
}
