import Coffer
import Observation

/// A value of a store for a screen: fetched, and again whenever a commit may have changed it.
///
/// ```swift
/// @State private var count: FetchedValue<Int>
///
/// // In the initialiser of the view, which has the store:
/// let value = FetchedValue(store) { tx in try tx.count(Note.where(\.pinned)) }
/// _count = State(initialValue: value)
///
/// var body: some View {
///     Text("\(count.value ?? 0) notes").onAppear { count.start() }
/// }
/// ```
///
/// A view that reads ``value``, ``error`` or ``isLoading`` is updated when that property changes,
/// and not for a value that is equal to the last one.
@MainActor @Observable
public final class FetchedValue<Value: Sendable & Equatable> {
    /// The value fetched last; `nil` until there is one. An error and ``stop()`` leave it as it is.
    public private(set) var value: Value?
    /// What ended the observation: what the fetch threw, or `StoreError` `.closed` when the store
    /// is closed. `start()` sets it to `nil`.
    public private(set) var error: (any Error)?
    /// Whether the first value since ``start()`` is awaited.
    public private(set) var isLoading = false

    @ObservationIgnored private let values: ObservedValues<Value>
    private var token: ObservationToken?

    /// A value that an observation gives.
    ///
    /// ```swift
    /// let count = store.observe { tx in try tx.count(Note.all) }
    /// FetchedValue(count.throttle(for: .milliseconds(100)))
    /// ```
    public init(_ values: ObservedValues<Value>) {
        self.values = values
    }

    /// A value that is read from a store. ``start()`` begins.
    ///
    /// - Parameters:
    ///   - store: The store; it stays open while the value is observed.
    ///   - fetch: Reads the value; runs on one of Coffer's threads.
    public convenience init(
        _ store: Store, _ fetch: @escaping @Sendable (inout ReadTransaction) throws -> Value
    ) {
        self.init(store.observe(fetch))
    }

    /// Whether the value is kept up to date: from ``start()`` to ``stop()`` or an error.
    public var isObserving: Bool { token != nil }

    /// Begins to fetch and to observe. Does nothing if that has begun. Releasing the object ends
    /// it.
    public func start() {
        guard token == nil else { return }
        if error != nil { error = nil }
        if !isLoading { isLoading = true }
        token = values.start { [weak self] error in
            self?.end(error)
        } onChange: { [weak self] value in
            self?.set(value)
        }
    }

    /// Ends the observation. The value stays as it is, and none comes after this call.
    public func stop() {
        token?.cancel()
        token = nil
        if isLoading { isLoading = false }
    }

    private func set(_ value: Value) {
        // The first value after a pause may be the old one.
        if self.value != value { self.value = value }
        if isLoading { isLoading = false }
    }

    private func end(_ error: any Error) {
        stop()
        self.error = error
    }
}
