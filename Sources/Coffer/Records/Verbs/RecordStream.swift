extension Store {
    /// The records of a query one by one, from one snapshot of the store.
    ///
    /// ```swift
    /// for try await note in store.stream(Note.where(\.pinned == true)) {
    ///     try await connection.send(note)
    /// }
    /// ```
    ///
    /// Each loop is a separate read. It lasts from the first record until the loop ends, also by
    /// `break` or because its task is cancelled. Until then it uses one of `maximumReaderCount`
    /// connections and keeps its snapshot. A snapshot that is too old ends with `.snapshotExpired`,
    /// as in any read. Without WAL the loop blocks every write, so it ends with `.busy` if it takes
    /// longer than `waitTimeout` for a portion.
    ///
    /// The loop throws what `fetch(_:)` throws, and `CancellationError`. It throws at the latest in
    /// place of the first record that cannot be read. Up to two portions before that record may be
    /// left out.
    ///
    /// - Parameters:
    ///   - query: Which records, in which order.
    ///   - portion: The number of records to read at once; at least 1.
    /// - Complexity: O(*portion*) memory: three portions at most.
    public func stream<R: Record>(_ query: Query<R>, portion: Int = 64) -> RecordStream<R> {
        RecordStream(core: core, query: query, portion: max(1, portion))
    }
}

/// The records of a query, as an asynchronous sequence. See `Store.stream(_:portion:)`.
public struct RecordStream<R: Record>: AsyncSequence, Sendable {
    let core: StoreCore
    let query: Query<R>
    let portion: Int

    /// Begins a loop over the records. Reading starts when the loop asks for its first record.
    public func makeAsyncIterator() -> Iterator {
        let (query, portion) = (query, portion)
        let loop = ReadLoop<[R]>(core) { tx, channel in
            try tx.forEachPortion(of: portion, query) { try channel.putBlocking($0) }
        }
        return Iterator(loop: loop)
    }

    /// One loop over the records.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let loop: ReadLoop<[R]>
        private var records: ArraySlice<R> = []

        fileprivate init(loop: ReadLoop<[R]>) {
            self.loop = loop
        }

        /// The next record, `nil` at the end.
        ///
        /// - Throws: As described at `Store.stream(_:portion:)`.
        public mutating func next() async throws -> R? {
            if Task.isCancelled {
                // The end of the records read ahead must not look like the end of the query.
                loop.cancel()
                throw CancellationError()
            }
            if records.isEmpty { records = try await loop.next()?[...] ?? [] }
            return records.popFirst()
        }
    }
}
