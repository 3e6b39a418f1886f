import CSQLCipher

/// Receives rows in the middle of a step, as the arguments of an aggregate function.
///
/// SQLite then passes all values of a row at once: it does not return for each row, and no call is
/// needed for each value. The collector runs no user code.
final class RowCollector {
    static let functionName = "coffer_collect"

    /// Receives one row's values, as many as the call has arguments; `false` ends the query.
    typealias Take =
        @convention(c) (
            _ target: UnsafeMutableRawPointer, _ values: UnsafeMutablePointer<OpaquePointer?>,
            _ count: Int32
        ) -> Bool

    /// The state that SQLite passes to the function. SQLite keeps it as long as it knows the
    /// function; registering another function of this name ends that at any time.
    fileprivate final class State {
        var target: UnsafeMutableRawPointer?
        var take: Take?
        /// How many values a row has.
        var columnCount: Int32 = 0
        /// How many groups of rows the run has begun. Coffer's query has only one.
        var groupCount = 0
        /// Whether this function, and not another of the same name, finished the last run.
        var isFinished = false
    }

    private let state = State()
    /// How many columns a row may have.
    let maximumColumnCount: Int

    fileprivate init(_ handle: Handle) throws(StoreError) {
        maximumColumnCount = Int(sqlite3_limit(handle.db, SQLITE_LIMIT_FUNCTION_ARG, -1))
        // SQLite releases the state, even if it refuses the function.
        let code = sqlite3_create_function_v2(
            handle.db, Self.functionName, -1, FunctionOptions().flags,
            Unmanaged.passRetained(state).toOpaque(), nil, stepCollector, finishCollector
        ) { if let state = $0 { Unmanaged<State>.fromOpaque(state).release() } }
        try handle.requireRegistered(code)
    }

    /// Passes the rows of one statement to `take`, in order, until `take` returns false.
    ///
    /// - Parameters:
    ///   - statement: A SELECT whose only column is a call of the SQL function `coffer_collect`.
    ///   - columnCount: How many arguments that call has: the values of a row.
    ///   - target: The first argument of `take`.
    /// - Throws: The error of a step. The step also fails if `take` returned false, or if a view or
    ///   the query calls the function `coffer_collect` too. `.misuse` if another function of that
    ///   name was registered.
    func run(
        _ statement: Statement, columnCount: Int, into target: UnsafeMutableRawPointer,
        _ take: @escaping Take
    ) throws(StoreError) {
        (state.target, state.take) = (target, take)
        (state.columnCount, state.groupCount) = (Int32(columnCount), 0)
        state.isFinished = false
        defer { state.target = nil }
        try statement.runToEnd()
        guard state.isFinished else {
            throw StoreError(
                .misuse,
                "the function \(Self.functionName) belongs to Coffer, and another one "
                    + "is registered",
                hint: "Give your function another name.", sql: statement.sql)
        }
    }

    fileprivate static func step(
        _ context: OpaquePointer, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>
    ) {
        guard let state = state(of: context), let target = state.target, let take = state.take,
            count == state.columnCount, isOnlyGroup(context, state)
        else { return sqlite3_result_error(context, "the function belongs to Coffer", -1) }
        if !take(target, values, count) {
            sqlite3_result_error(context, "a row was refused", -1)
        }
    }

    private static func state(of context: OpaquePointer) -> State? {
        sqlite3_user_data(context).map {
            Unmanaged<State>.fromOpaque($0).takeUnretainedValue()
        }
    }

    /// Whether the call belongs to the first group. A hostile file's view may call the function
    /// too, while its rows are collected.
    private static func isOnlyGroup(_ context: OpaquePointer, _ state: State) -> Bool {
        // SQLite zeroes this memory at the first row of a group.
        guard let memory = sqlite3_aggregate_context(context, 1) else { return false }
        let isKnown = memory.assumingMemoryBound(to: Bool.self)
        if isKnown.pointee { return true }
        isKnown.pointee = true
        state.groupCount += 1
        return state.groupCount == 1
    }

    fileprivate static func finish(_ context: OpaquePointer) {
        guard let state = state(of: context), state.target != nil else { return }
        state.isFinished = true
    }
}

extension Handle {
    /// The collector of this handle. The first call registers its function, and throws the engine's
    /// error if that fails.
    func rowCollector() throws(StoreError) -> RowCollector {
        if let collector { return collector }
        let made = try RowCollector(self)
        collector = made
        return made
    }
}

private func stepCollector(
    context: OpaquePointer?, count: Int32, values: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let values else { return }
    RowCollector.step(context, count, values)
}

private func finishCollector(context: OpaquePointer?) {
    guard let context else { return }
    RowCollector.finish(context)
}
