import CSQLCipher

extension Connection {
    /// Registers an aggregate function that SQL can also call over a window of rows.
    ///
    /// ```swift
    /// struct RunningSum: WindowFunction {
    ///     var sum: Int64 = 0
    ///     mutating func step(_ arguments: FunctionArguments) throws {
    ///         sum += try arguments.get(0)
    ///     }
    ///     mutating func inverse(_ arguments: FunctionArguments) throws {
    ///         sum -= try arguments.get(0)
    ///     }
    ///     func result() -> Value { .integer(sum) }
    /// }
    /// try connection.register(window: "running_sum", argumentCount: 1) { RunningSum() }
    /// let rows = try connection.rows("SELECT running_sum(n) OVER (ORDER BY day) FROM t")
    /// ```
    ///
    /// It needs SQLCipher 4: SQLite has window functions since 3.25, and SQLCipher 3.4.1 is SQLite
    /// 3.15. For a function that both engines have, use `register(aggregate:)`, which takes a
    /// `WindowFunction` too. `removeFunction` removes it.
    /// See <https://www.sqlite.org/windowfunctions.html#udfwinfunc>.
    ///
    /// - Parameters:
    ///   - name: As for a function.
    ///   - argumentCount: How many arguments it takes, at most 100; `nil` for any number.
    ///   - options: What the engine may assume.
    ///   - make: Makes the state for one group or partition of rows.
    /// - Throws: As `register(function:)`; `StoreError` `.unsupported` on SQLCipher 3.
    /// - Note: The corresponding C function is `sqlite3_create_window_function`.
    public func register(
        window name: String, argumentCount: Int? = nil, options: FunctionOptions = [],
        _ make: @escaping () -> any WindowFunction
    ) throws {
        try Self.requireFunctionName(name)
        // Checked even before the key is set: otherwise it would fail only when the file opens.
        guard coffer_has_window_functions() else {
            throw StoreError(
                .unsupported, "a window function needs SQLCipher 4, with SQLite 3.25 or later",
                hint: "register(aggregate:) works on this engine, without OVER.")
        }
        try set(Self.functionSetting(name, argumentCount)) { handle throws(StoreError) in
            let box = WindowMaker(handle, make)
            // The engine releases the box, even if it refuses the function.
            let code = coffer_create_window_function(
                handle.db, name, Int32(clamping: argumentCount ?? -1), options.flags,
                Unmanaged.passRetained(box).toOpaque(), stepWindow, finishWindow, valueOfWindow,
                inverseWindow
            ) { $0.map { Unmanaged<AnyObject>.fromOpaque($0).release() } }
            try handle.requireRegistered(code)
        }
    }
}

/// The state of an aggregate function that SQL can also call over a window of rows, which loses
/// rows at its start as it gains others at its end.
public protocol WindowFunction: Aggregate {
    /// Removes the arguments of the window's oldest row, which `step(_:)` has added.
    mutating func inverse(_ arguments: FunctionArguments) throws
    /// The value of the rows in the window; called any number of times. Defaults to `result()`.
    func value() throws -> Value
}

extension WindowFunction {
    /// The value of the rows in the window: `result()`.
    public func value() throws -> Value { try result() }
}

private typealias WindowMaker = StateMaker<any WindowFunction>
private typealias Window = GroupState<any WindowFunction>

/// The context, box and window of a call; `nil` if the engine passed none or memory is exhausted.
private func call(_ context: OpaquePointer?) -> (OpaquePointer, WindowMaker, Window)? {
    guard let context, let pointer = sqlite3_user_data(context) else { return nil }
    let box = Unmanaged<WindowMaker>.fromOpaque(pointer).takeUnretainedValue()
    guard let window = group(context, { Window(box.make()) }) else {
        sqlite3_result_error_nomem(context)
        return nil
    }
    return (context, box, window)
}

private func change(_ context: OpaquePointer?, _ work: (inout any WindowFunction) throws -> Void) {
    guard let (context, box, window) = call(context), !window.hasFailed else { return }
    guard let handle = box.handle else { return refuse(context) }
    do {
        try handle.inCallback { try work(&window.state) }
    } catch {
        window.hasFailed = true
        handle.fail(context, error)
    }
}

private func stepWindow(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    change(context) { try $0.step(try FunctionArguments(count, arguments)) }
}

private func inverseWindow(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    change(context) { try $0.inverse(try FunctionArguments(count, arguments)) }
}

private func valueOfWindow(context: OpaquePointer?) {
    guard let (context, box, window) = call(context), !window.hasFailed else { return }
    guard let handle = box.handle else { return refuse(context) }
    handle.answer(context) { try window.state.value() }
}

private func finishWindow(context: OpaquePointer?) {
    guard let (context, box, window) = call(context) else { return }
    // Called exactly once for each window, even after a failure, so it frees the window's memory.
    defer { Unmanaged.passUnretained(window).release() }
    guard !window.hasFailed else { return }
    guard let handle = box.handle else { return refuse(context) }
    handle.answer(context) { try window.state.result() }
}
