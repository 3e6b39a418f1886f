extension Store {
    /// Runs a read that another thread can end; otherwise as `read(timeout:_:)`.
    ///
    /// - Throws: `StoreError` `.cancelled` after `interrupt()`; otherwise as `read(timeout:_:)`.
    public func read<T>(
        timeout: Duration? = nil, interruptedBy interruption: Interruption,
        _ body: (inout ReadTransaction) throws -> T
    ) throws -> T {
        try interruption.running { cancellation in
            try core.read(timeout: timeout, cancellation: cancellation, body)
        }
    }

    /// Runs a write that another thread can end; otherwise as `write(mode:timeout:_:)`.
    ///
    /// Inside another write of the same store, only that write can be ended.
    ///
    /// - Throws: `StoreError` `.cancelled` after `interrupt()`, with nothing written; otherwise as
    ///   `write(mode:timeout:_:)`.
    @discardableResult
    public func write<T>(
        mode: TransactionMode = .immediate, timeout: Duration? = nil,
        interruptedBy interruption: Interruption, fileID: StaticString = #fileID,
        line: UInt = #line, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        let caller = Caller(fileID: fileID, line: line)
        return try interruption.running { cancellation in
            try core.write(
                .init(mode: mode, timeout: timeout, caller: caller), cancellation: cancellation,
                body)
        }
    }
}
