import CSQLCipher

/// An event in the run of one statement.
public struct TraceEvent: Sendable {
    /// The kind of an event.
    public enum Kind: Sendable {
        /// The statement begins.
        case begin
        /// The statement has ended, after this time.
        case end(Duration)
    }

    /// The kind of event.
    public let kind: Kind
    /// The SQL text, with `?` where values were bound; for a trigger that begins, a comment.
    public let sql: String
    /// The SQL text with the bound values in it, if they were requested.
    public let sqlWithValues: String?
}

extension Connection {
    /// Reports every statement that the program runs on this connection, but not Coffer's internal
    /// ones. `nil` ends the trace, and another closure replaces the earlier one.
    ///
    /// It can be called before the key is set: the trace then begins with `setKey(_:)`.
    ///
    /// - Parameters:
    ///   - includingValues: Whether to report the bound values too. They are what the store
    ///     encrypts: never log them where others can read them.
    ///   - body: Receives each event, in the middle of the statement: it must not use the
    ///     connection.
    /// - Throws: `StoreError` if the engine refuses.
    /// - Note: The corresponding C function is `sqlite3_trace_v2`.
    public func trace(
        includingValues: Bool = false, _ body: ((TraceEvent) -> Void)?
    ) throws {
        guard let body else {
            settings.remove("trace")
            handle?.endTrace()
            return
        }
        try set("trace") { handle throws(StoreError) in
            try handle.trace(TraceBox(handle, includingValues, body))
        }
    }
}

/// The target of the trace's context pointer; the handle keeps it alive.
final class TraceBox {
    /// Unowned, because the handle keeps this box.
    unowned let handle: Handle
    let isIncludingValues: Bool
    let body: (TraceEvent) -> Void

    init(_ handle: Handle, _ isIncludingValues: Bool, _ body: @escaping (TraceEvent) -> Void) {
        self.handle = handle
        self.isIncludingValues = isIncludingValues
        self.body = body
    }

    /// Calls the closure with one event, unless Coffer runs an internal statement.
    ///
    /// The event has the bound values only if they were requested and the SQL shows no key.
    ///
    /// - Parameter text: The engine's text for the statement, which for a trigger is a comment;
    ///   `nil` for the statement's own text.
    func tell(_ kind: TraceEvent.Kind, _ statement: OpaquePointer?, _ text: String?) {
        guard !handle.authorizer.isCoffer else { return }
        let sql = text ?? sqlite3_sql(statement).map { String(cString: $0) } ?? ""
        let redacted = StoreError.redacted(sql)
        var sqlWithValues: String?
        if isIncludingValues, redacted == sql, let expanded = sqlite3_expanded_sql(statement) {
            sqlWithValues = String(cString: expanded)
            sqlite3_free(expanded)
        }
        let was = handle.callback.isRunning
        handle.callback.isRunning = true
        defer { handle.callback.isRunning = was }
        body(TraceEvent(kind: kind, sql: redacted, sqlWithValues: sqlWithValues))
    }
}

extension Handle {
    fileprivate func trace(_ box: TraceBox) throws(StoreError) {
        hooks.trace = box
        let events = UInt32(SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE)
        let code = sqlite3_trace_v2(
            db, events, tellTrace, Unmanaged.passUnretained(box).toOpaque())
        guard code == SQLITE_OK else { throw error(code) }
    }

    fileprivate func endTrace() {
        sqlite3_trace_v2(db, 0, nil, nil)
        hooks.trace = nil
    }
}

private func tellTrace(
    event: UInt32, context: UnsafeMutableRawPointer?, statement: UnsafeMutableRawPointer?,
    detail: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context else { return 0 }
    let box = Unmanaged<TraceBox>.fromOpaque(context).takeUnretainedValue()
    let raw = statement.map { OpaquePointer($0) }
    if event == SQLITE_TRACE_STMT {
        let text = detail.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) }
        box.tell(.begin, raw, text)
    } else if let detail {
        let nanoseconds = detail.assumingMemoryBound(to: sqlite3_int64.self).pointee
        box.tell(.end(.nanoseconds(nanoseconds)), raw, nil)
    }
    return 0
}
