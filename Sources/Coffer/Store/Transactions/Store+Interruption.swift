extension Store {
    /// Runs a read that another thread can end; otherwise as `read(timeout:_:)`.
    ///
    /// - Throws: `StoreError` `.cancelled` after `interrupt()`; otherwise as `read(timeout:_:)`.
    public func read<T>(
        timeout: Duration? = nil, interruptedBy interruption: Interruption,
        _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        try interruption.running { cancellation in
            if let tracer = core.tracer {
                return try core.read(
                    tracedBy: tracer, timeout: timeout, cancellation: cancellation, body)
            }
            return try core.read(timeout: timeout, cancellation: cancellation, body)
        }
    }

    /// Runs a write that another thread can end; otherwise as `write(mode:timeout:_:)`.
    ///
    /// It does not share its commit with other writes. Inside another write of the same store, only
    /// that write can be ended.
    ///
    /// - Throws: `StoreError` `.cancelled` after `interrupt()`, with nothing written; otherwise as
    ///   `write(mode:timeout:_:)`.
    @discardableResult
    public func write<T>(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        interruptedBy interruption: Interruption, fileID: StaticString = #fileID,
        line: UInt = #line, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        // Of the writes that share a commit, an interrupt could end only the first.
        let request = WriteQueue.Request(
            mode: mode, timeout: timeout, isSharing: false,
            caller: Caller(fileID: fileID, line: line))
        return try interruption.running { cancellation in
            if let tracer = core.tracer {
                return try core.write(
                    tracedBy: tracer, request, cancellation: cancellation, body)
            }
            return try core.write(request, cancellation: cancellation, body)
        }
    }
}
