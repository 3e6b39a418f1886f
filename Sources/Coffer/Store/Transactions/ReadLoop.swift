/// One loop over what a read, on a thread of the store's, puts into a channel.
///
/// The read begins with the first element that is asked for, and ends when the loop lets it go.
final class ReadLoop<Element: Sendable> {
    typealias Body = @Sendable (inout ReadTransaction, Channel<Element>) throws -> Void

    private let core: StoreCore
    private let body: Body
    private let channel: Channel<Element>
    private var task: Task<Void, Never>?

    init(_ core: StoreCore, _ body: @escaping Body) {
        (self.core, self.body) = (core, body)
        // Only in WAL may a loop take its time: else it holds up the writer.
        channel = Channel(timeout: core.pool.hasReaders ? nil : core.configuration.waitTimeout)
    }

    deinit {
        cancel()
        task?.cancel()
    }

    /// Ends the read, and every call of `next()` from now on, unless it has ended.
    func cancel() { channel.fail(StoreError.streamCancelled) }

    /// The next element, `nil` at the end.
    func next() async throws -> Element? {
        if task == nil {
            let (core, body, channel) = (core, body, channel)
            task = Task { await core.fill(channel, body) }
        }
        return try await channel.take()
    }
}

extension StoreCore {
    /// Lets a read put into the channel what it has, and ends the channel as the read ends.
    fileprivate func fill<Element>(
        _ channel: Channel<Element>, _ body: @escaping ReadLoop<Element>.Body
    ) async {
        do {
            try await read { tx in
                tx.scope.whenStopped { channel.fail($0) }
                try body(&tx, channel)
            }
            channel.finish()
        } catch {
            channel.fail(error)
        }
    }
}
