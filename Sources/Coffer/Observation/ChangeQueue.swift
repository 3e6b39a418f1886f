import DequeModule
import Synchronization

/// The events that wait for one loop over `Store.changes(in:)`.
///
/// Bounded: if more rows wait than it holds, one event replaces all of them. A waiting rescan also
/// covers later commits, because the loop reads again only after it gets the rescan.
final class ChangeQueue: Sendable {
    private struct State {
        var events = Deque<ChangeEvent>()
        var rowCount = 0
        var generation = 0
        var closed: StoreError?

        mutating func replaceAll(by reason: ChangeEvent.Reason) {
            if case .rescan = events.last { return }
            events = [.rescan(reason)]
            rowCount = 0
        }
    }

    /// The followed tables, in lower case.
    let tables: TableSet
    private let maximumRowCount: Int
    private let state = Mutex(State())
    private let wakeup = Wakeup()

    init(tables: TableSet, maximumRowCount: Int) {
        self.tables = tables
        self.maximumRowCount = maximumRowCount
    }

    /// The number of loops that had begun to observe before this one.
    var generation: Int {
        get { state.withLock { $0.generation } }
        set { state.withLock { $0.generation = newValue } }
    }

    /// Adds what one commit did: its rows of the followed tables as one event, or a rescan if they
    /// cannot be listed.
    ///
    /// Adds nothing if the commit touched no followed table, or while a rescan waits. If more rows
    /// would wait than the queue holds, one rescan replaces all events.
    func put(_ result: CommitRecording.Result) {
        let reason =
            result.rescans[nil] ?? tables.names.lazy.compactMap { result.rescans[$0] }.first
        if let reason { return put(reason) }
        let rows = result.rows(in: tables)
        guard !rows.isEmpty else { return }
        state.withLock { state in
            if case .rescan = state.events.last { return }
            guard state.rowCount + rows.count <= maximumRowCount else {
                return state.replaceAll(by: .overflow)
            }
            state.rowCount += rows.count
            state.events.append(.commit(rows))
        }
        wakeup.signal()
    }

    func put(_ reason: ChangeEvent.Reason) {
        state.withLock { $0.replaceAll(by: reason) }
        wakeup.signal()
    }

    func close(_ reason: StoreError) {
        state.withLock { $0.closed = reason }
        wakeup.signal()
    }

    /// Takes the first waiting event; waits if there is none. Waiting events are delivered even
    /// after the store has closed.
    ///
    /// - Throws: The reason of `close(_:)` if no event waits, which is `.closed`; `.cancelled` if
    ///   the task was cancelled.
    func next() async throws(StoreError) -> ChangeEvent {
        while true {
            if Task.isCancelled { throw ObservedRead.cancelled }
            let event = try state.withLock { state throws(StoreError) -> ChangeEvent? in
                guard let event = state.events.popFirst() else {
                    if let closed = state.closed { throw closed }
                    return nil
                }
                if case .commit(let rows) = event { state.rowCount -= rows.count }
                return event
            }
            if let event { return event }
            await wakeup.wait()
        }
    }
}
