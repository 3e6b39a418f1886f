extension Store {
    /// The records of a query one by one, on one snapshot of the store.
    ///
    /// ```swift
    /// for try await note in store.stream(Note.where(\.pinned == true)) {
    ///     try await connection.send(note)
    /// }
    /// ```
    ///
    /// Every loop over it is a read of its own, from its first record until the loop ends, also by
    /// `break` or because its task is cancelled. Until then it uses one of `readerCountMax`
    /// connections and keeps its snapshot, which ends as that of any read: with
    /// `.snapshotExpired` if it is too old. Without WAL it holds up every write: a loop that takes
    /// longer than `waitTimeout` for a portion ends with `.busy` there.
    ///
    /// The loop throws what `fetch(_:)` throws, at the latest in place of the first record that
    /// cannot be read: up to two portions before it may be left out. Also `.cancelled`.
    ///
    /// - Parameters:
    ///   - query: Which records, in which order.
    ///   - portion: How many records are read at once; at least 1.
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

    /// Begins a loop over the records. Nothing is read before its first record is asked for.
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
        /// - Throws: As `Store.stream(_:portion:)` says.
        public mutating func next() async throws -> R? {
            if Task.isCancelled {
                // What was read ahead is not the end of the records.
                loop.cancel()
                throw StoreError.streamCancelled
            }
            if records.isEmpty { records = try await loop.next()?[...] ?? [] }
            return records.popFirst()
        }
    }
}
