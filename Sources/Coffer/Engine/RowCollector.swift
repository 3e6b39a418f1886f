import CSQLCipher

/// Takes rows out of the engine in the middle of a step, as the arguments of an aggregate function.
///
/// All values of a row are at hand at once then, and the engine neither returns for each row nor is
/// asked for each value. It runs no code of the user's.
final class RowCollector {
    static let functionName = "coffer_collect"

    /// Gets the values of one row, as many as the function was called with; `false` ends the query.
    typealias Take =
        @convention(c) (
            _ target: UnsafeMutableRawPointer, _ values: UnsafeMutablePointer<OpaquePointer?>,
            _ count: Int32
        ) -> Bool

    /// What the function finds by its pointer; the engine frees it with the function.
    private struct State {
        var target: UnsafeMutableRawPointer?
        var take: Take?
        /// Whether the last run came to its end by this function, and not one of the same name.
        var isFinished = false
    }

    private let state: UnsafeMutablePointer<State>
    /// How many columns a row may have.
    let columnCountMax: Int

    fileprivate init(_ handle: Handle) throws(StoreError) {
        columnCountMax = Int(sqlite3_limit(handle.db, SQLITE_LIMIT_FUNCTION_ARG, -1))
        state = .allocate(capacity: 1)
        state.initialize(to: State())
        // The engine frees the state, also if it refuses the function.
        let code = sqlite3_create_function_v2(
            handle.db, Self.functionName, -1, FunctionOptions().flags, state, nil, stepCollector,
            finishCollector
        ) { $0?.deallocate() }
        try handle.requireRegistered(code)
    }

    /// Hands the rows of one statement to `take`, until it refuses one.
    ///
    /// - Parameters:
    ///   - statement: A SELECT of this function alone.
    ///   - target: What `take` is given.
    /// - Throws: What stepping throws, also where `take` has refused a row; `.misuse` if there is
    ///   another function of this name.
    func run(
        _ statement: Statement, into target: UnsafeMutableRawPointer, _ take: @escaping Take
    ) throws(StoreError) {
        state.pointee = State(target: target, take: take)
        defer { state.pointee.target = nil }
        try statement.runToEnd()
        guard state.pointee.isFinished else {
            throw StoreError(
                .misuse, "the function \(Self.functionName) is Coffer's, and there is another one",
                hint: "Give yours another name.", sql: statement.sql)
        }
    }

    fileprivate static func step(
        _ context: OpaquePointer, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>
    ) {
        let state = sqlite3_user_data(context)?.assumingMemoryBound(to: State.self)
        if let target = state?.pointee.target, let take = state?.pointee.take {
            if take(target, values, count) { return }
            return sqlite3_result_error(context, "a row was refused", -1)
        }
        sqlite3_result_error(context, "the function is Coffer's own", -1)
    }

    fileprivate static func finish(_ context: OpaquePointer) {
        let state = sqlite3_user_data(context)?.assumingMemoryBound(to: State.self)
        if state?.pointee.target != nil { state?.pointee.isFinished = true }
    }
}

extension Handle {
    /// The collector of this handle, registered when it is asked for first.
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
