import Coffer
import Observation

/// The rows of a query for a screen: fetched, and fetched again whenever a commit may have changed
/// them.
///
/// ```swift
/// @State private var notes: FetchedRows<Note>
///
/// // In the initialiser of the view, which has the store:
/// let query = Note.where(\.pinned).order(by: \.title)
/// _notes = State(initialValue: FetchedRows(store, query))
///
/// var body: some View {
///     List(notes.rows) { note in Text(note.title) }.onAppear { notes.start() }
/// }
/// ```
///
/// A view that reads ``rows``, ``error`` or ``isLoading`` is updated when that property changes,
/// and not for rows that are equal to the last ones.
@MainActor
public final class FetchedRows<Row: Sendable & Equatable>: Observable {
    private let fetched: FetchedValue<[Row]>

    /// Rows that an observation gives.
    ///
    /// ```swift
    /// let notes = store.observe { tx in try tx.fetch(Note.all) }
    /// FetchedRows(notes.throttle(for: .milliseconds(100)))
    /// ```
    public init(_ rows: ObservedValues<[Row]>) {
        fetched = FetchedValue(rows)
    }

    /// Rows that are read from a store. ``start()`` begins.
    ///
    /// - Parameters:
    ///   - store: The store; it stays open while the rows are observed.
    ///   - fetch: Reads the rows; runs on one of Coffer's threads.
    public convenience init(
        _ store: Store, _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> [Row]
    ) {
        self.init(store.observe(fetch))
    }

    /// The records of a query. ``start()`` begins.
    ///
    /// - Parameters:
    ///   - store: The store; it stays open while the rows are observed.
    ///   - query: The query; its type may have no table yet.
    public convenience init(_ store: Store, _ query: Query<Row>) where Row: Record {
        self.init(store) { tx in try tx.fetch(query) }
    }

    /// The rows fetched last; none until they have come. An error and ``stop()`` leave them as they
    /// are.
    public var rows: [Row] { fetched.value ?? [] }

    /// What ended the observation: what the fetch threw, or `StoreError` `.closed` when the store
    /// is closed. `start()` sets it to `nil`.
    public var error: (any Error)? { fetched.error }

    /// Whether the first rows since ``start()`` are awaited.
    public var isLoading: Bool { fetched.isLoading }

    /// Whether the rows are kept up to date: from ``start()`` to ``stop()`` or an error.
    public var isObserving: Bool { fetched.isObserving }

    /// Begins to fetch and to observe. Does nothing if that has begun. Releasing the object ends
    /// it.
    public func start() { fetched.start() }

    /// Ends the observation. The rows stay as they are, and none come after this call.
    public func stop() { fetched.stop() }
}
