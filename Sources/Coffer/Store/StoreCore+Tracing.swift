/// Reads and writes in the spans of a tracer.
extension StoreCore {
    private func begin(_ tracer: any StoreTracer, _ caller: Caller?) -> any TransactionSpan {
        let label = configuration.metricsLabel ?? pool.file?.location.name ?? ""
        return tracer.begin(
            TracedTransaction(
                kind: caller == nil ? .read : .write, store: label,
                fileID: caller.map { "\($0.fileID)" }, line: caller.map { Int($0.line) }))
    }

    /// Runs a write in a span of `tracer`.
    ///
    /// - Throws: As `write(_:cancellation:_:)`.
    func write<T>(
        tracedBy tracer: any StoreTracer, _ request: WriteQueue.Request,
        cancellation: Cancellation? = nil, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        guard HeldStore.current(of: id) == nil else {
            return try write(request, cancellation: cancellation, body)
        }
        let span = begin(tracer, request.caller)
        do {
            let value = try write(request, cancellation: cancellation) { tx in
                span.bodyBegins()
                return try body(&tx)
            }
            span.end(nil)
            return value
        } catch {
            span.end(error)
            throw error
        }
    }

    /// Runs a write in a span of `tracer`, without blocking a thread of the cooperative pool.
    ///
    /// - Throws: As `write(_:_:)`.
    func write<T: Sendable>(
        tracedBy tracer: any StoreTracer, _ request: WriteQueue.Request,
        _ body: @escaping @Sendable (inout WriteTransaction) throws -> T
    ) async throws -> T {
        let span = begin(tracer, request.caller)
        do {
            let value = try await write(request) { tx in
                span.bodyBegins()
                return try body(&tx)
            }
            span.end(nil)
            return value
        } catch {
            span.end(error)
            throw error
        }
    }

    /// Runs a read in a span of `tracer`.
    ///
    /// - Throws: As `read(timeout:cancellation:_:)`.
    func read<T>(
        tracedBy tracer: any StoreTracer, timeout: Duration?, cancellation: Cancellation? = nil,
        _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        guard HeldStore.current(of: id) == nil else {
            return try read(timeout: timeout, cancellation: cancellation, body)
        }
        let span = begin(tracer, nil)
        do {
            let value = try read(timeout: timeout, cancellation: cancellation) { tx in
                span.bodyBegins()
                return try body(&tx)
            }
            span.end(nil)
            return value
        } catch {
            span.end(error)
            throw error
        }
    }

    /// Runs a read in a span of `tracer`, without blocking a thread of the cooperative pool.
    ///
    /// - Throws: As `read(timeout:_:)`.
    func read<T: Sendable>(
        tracedBy tracer: any StoreTracer, timeout: Duration?,
        _ body: @escaping @Sendable (inout ReadTransaction) throws -> T
    ) async throws -> T {
        let span = begin(tracer, nil)
        do {
            let value = try await read(timeout: timeout) { tx in
                span.bodyBegins()
                return try body(&tx)
            }
            span.end(nil)
            return value
        } catch {
            span.end(error)
            throw error
        }
    }
}
