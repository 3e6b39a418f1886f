/// One loop over the elements that a read, on one of Coffer's threads, puts into a channel.
///
/// The read begins with the first `next()`, and ends when the loop releases this object.
final class ReadLoop<Element: Sendable> {
    typealias Body = @Sendable (inout ReadTransaction, Channel<Element>) throws -> Void

    private let core: StoreCore
    private let body: Body
    private let channel: Channel<Element>
    private var task: Task<Void, Never>?

    init(_ core: StoreCore, _ body: @escaping Body) {
        (self.core, self.body) = (core, body)
        // A loop on a reader may take its time; a loop on the writer holds up writes.
        channel = Channel(timeout: core.pool.hasReaders ? nil : core.configuration.waitTimeout)
    }

    deinit {
        cancel()
        task?.cancel()
    }

    /// Ends the read, and lets every later call of `next()` throw `.cancelled`, or
    /// `CancellationError` in a cancelled task. Does nothing if the read has ended.
    func cancel() { channel.fail(StoreError.streamCancelled) }

    /// Waits for the next element; the first call begins the read.
    ///
    /// - Returns: `nil` once the read has ended without an error and all its elements were taken.
    /// - Throws: What the read throws; `CancellationError` if the task was cancelled.
    func next() async throws -> Element? {
        guard !Task.isCancelled else {
            // Elements that were read already, or their end, would look like the whole.
            cancel()
            throw CancellationError()
        }
        if task == nil {
            let (core, body, channel) = (core, body, channel)
            task = Task { await core.fill(channel, body) }
        }
        do {
            return try await channel.take()
        } catch {
            throw error.ofTask
        }
    }
}

extension StoreCore {
    /// Runs a read that fills the channel. Ends the channel when the read ends: with the error
    /// after all elements if the read fails, and at once if it is stopped.
    fileprivate func fill<Element>(
        _ channel: Channel<Element>, _ body: @escaping ReadLoop<Element>.Body
    ) async {
        do {
            try await read { tx in
                tx.access.scope.whenStopped { channel.fail($0) }
                try body(&tx, channel)
            }
            channel.finish()
        } catch {
            // What was read before the error is good.
            channel.finish(error)
        }
    }
}
