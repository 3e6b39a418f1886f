import CSQLCipher

extension Connection {
    /// Registers a function that SQL can call.
    ///
    /// ```swift
    /// try connection.register(function: "hypotenuse", argumentCount: 2, options: .deterministic) {
    ///     .real(hypot(try $0.get(0), try $0.get(1)))
    /// }
    /// ```
    ///
    /// It lives until it is removed or the connection closes; a change of the key keeps it. In a
    /// store, use `prepareConnections(_:)`. Arguments that come from pages are known to
    /// be authentic before `body` gets them. `body` must use its arguments only: using its
    /// connection is `.misuse`.
    ///
    /// - Parameters:
    ///   - name: At most 255 bytes of UTF-8. A function of the same name and number of arguments is
    ///     replaced, even a built-in one.
    ///   - argumentCount: How many arguments it takes, at most 100; `nil` for any number.
    ///   - options: What the engine may assume.
    ///   - body: The work. An error that it throws fails the statement.
    /// - Throws: `StoreError` `.misuse` for a name or count that the engine refuses, `.busy` if the
    ///   function exists and a statement has a current row.
    /// - Note: The corresponding C function is `sqlite3_create_function_v2`.
    public func register(
        function name: String, argumentCount: Int? = nil, options: FunctionOptions = [],
        _ body: @escaping (FunctionArguments) throws -> Value
    ) throws {
        try Self.requireFunctionName(name)
        try set(Self.functionSetting(name, argumentCount)) { handle throws(StoreError) in
            let box = FunctionBox(handle, body)
            try handle.create(
                name, argumentCount, options, box, call: callFunction, step: nil, final: nil)
        }
    }

    /// Registers an aggregate function that SQL can call, such as a median.
    ///
    /// - Parameters:
    ///   - name: As for a function.
    ///   - argumentCount: How many arguments it takes, at most 100; `nil` for any number.
    ///   - options: What the engine may assume.
    ///   - make: Makes the state for one group of rows.
    /// - Throws: As `register(function:)`.
    /// - Note: The corresponding C function is `sqlite3_create_function_v2`.
    public func register(
        aggregate name: String, argumentCount: Int? = nil, options: FunctionOptions = [],
        _ make: @escaping () -> any Aggregate
    ) throws {
        try Self.requireFunctionName(name)
        try set(Self.functionSetting(name, argumentCount)) { handle throws(StoreError) in
            let box = StateMaker<any Aggregate>(handle, make)
            try handle.create(
                name, argumentCount, options, box, call: nil, step: stepAggregate,
                final: finishAggregate)
        }
    }

    /// Removes a function or aggregate that was registered with this name and number of arguments.
    ///
    /// A built-in function that it replaced does not come back on this connection.
    ///
    /// - Throws: `StoreError` `.busy` while a statement has a current row; `.misuse` as `register`.
    public func removeFunction(_ name: String, argumentCount: Int? = nil) throws {
        try Self.requireFunctionName(name)
        if let handle {
            try handle.create(
                name, argumentCount, [], nil, call: nil, step: nil, final: nil)
        }
        settings.remove(Self.functionSetting(name, argumentCount))
    }

    /// Refuses unusable names. The engine would cut a name at its first NUL.
    static func requireFunctionName(_ name: String) throws(StoreError) {
        guard !name.isEmpty, !name.utf8.contains(0) else {
            throw StoreError(.misuse, "the name of a function must not be empty or contain NUL")
        }
        let own = [ValueList.function, Regexp.function, JSONFunction.name]
        guard !own.contains(name.asciiLowercased) else {
            throw StoreError(
                .misuse, "\(name.asciiLowercased) is a function of Coffer",
                hint: "Give your function another name.")
        }
        guard !engineFunctions.contains(name.asciiLowercased) else {
            throw StoreError(
                .misuse, "\(name) is a function of SQLite that Coffer's own SQL calls",
                hint: "Give your function another name.")
        }
    }

    /// The functions by which Coffer reads sizes and storage classes. With another one of that name
    /// a value could look like NULL.
    private static let engineFunctions: Set = ["ifnull", "length", "substr", "typeof"]

    static func functionSetting(_ name: String, _ argumentCount: Int?) -> String {
        "function \(name.asciiLowercased) \(argumentCount ?? -1)"
    }
}

/// The state of an aggregate function over one group of rows.
public protocol Aggregate {
    /// Takes the arguments of one row.
    mutating func step(_ arguments: FunctionArguments) throws
    /// The value of the group; called once, even for a group without rows.
    func result() throws -> Value
}

/// The object behind a function's pointer. The engine releases it with the function.
private final class FunctionBox {
    /// `nil` once an adopted database went back to its owner with the function still registered.
    var handle: Handle? { link.handle }
    private let link: HandleLink
    let body: (FunctionArguments) throws -> Value

    init(_ handle: Handle, _ body: @escaping (FunctionArguments) throws -> Value) {
        link = handle.link
        self.body = body
    }
}

/// Makes the state of each group of rows, for an aggregate or a window function.
final class StateMaker<State> {
    /// `nil` once an adopted database went back to its owner with the function still registered.
    var handle: Handle? { link.handle }
    private let link: HandleLink
    let make: () -> State

    init(_ handle: Handle, _ make: @escaping () -> State) {
        link = handle.link
        self.make = make
    }
}

/// The state of one group, window or partition of rows.
final class GroupState<State> {
    var state: State
    /// A group that has failed has no result.
    var hasFailed = false

    init(_ state: State) {
        self.state = state
    }
}

extension Handle {
    fileprivate typealias Call =
        @convention(c) (
            OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
        ) -> Void

    fileprivate func create(
        _ name: String, _ argumentCount: Int?, _ options: FunctionOptions, _ box: AnyObject?,
        call: Call?, step: Call?, final: (@convention(c) (OpaquePointer?) -> Void)?
    ) throws(StoreError) {
        // The engine releases the box, even if it refuses the function.
        let code = sqlite3_create_function_v2(
            db, name, Int32(clamping: argumentCount ?? -1), options.flags,
            box.map { Unmanaged.passRetained($0).toOpaque() }, call, step, final
        ) { $0.map { Unmanaged<AnyObject>.fromOpaque($0).release() } }
        try requireRegistered(code)
    }

    func requireRegistered(_ code: Int32) throws(StoreError) {
        guard code != SQLITE_OK else { return }
        let failure = error(code)
        throw code & 0xff == SQLITE_MISUSE
            ? StoreError(
                .misuse, "the engine refuses a function of this name and number of arguments",
                hint: "A name has at most 255 bytes, a function at most 100 arguments.")
            : failure
    }

    /// Runs a function's work and passes its value or its error to the engine.
    func answer(
        _ context: OpaquePointer, _ work: () throws -> Value
    ) {
        do {
            try inCallback { try work().bindable().setResult(of: context) }
        } catch {
            fail(context, error)
        }
    }

    /// Runs the user's code in the middle of a statement, on authentic values only.
    func inCallback<T>(_ work: () throws -> T) throws -> T {
        if let failure = probeFailure() { throw failure }
        let was = callback.isRunning
        callback.isRunning = true
        defer { callback.isRunning = was }
        return try work()
    }

    func fail(_ context: OpaquePointer, _ error: any Error) {
        callback.error = error
        let known = error as? FunctionError
        let message =
            known?.message ?? (error as? StoreError)?.message ?? "a function of the program failed"
        var text = message
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_result_error(context, $0.baseAddress, Int32(clamping: $0.count))
            }
        }
        if let code = known?.resultCode, code != SQLITE_ERROR {
            sqlite3_result_error_code(context, code)
        }
        if (error as? StoreError)?.code == .damaged {
            sqlite3_result_error_code(context, SQLITE_CORRUPT)
        }
    }
}

extension Value {
    /// The value itself. Throws for NaN, which SQLite would turn into NULL.
    fileprivate func bindable() throws(StoreError) -> Value {
        guard case .real(let real) = self, real.isNaN else { return self }
        throw StoreError(.mismatch, "a function returned NaN: SQLite makes it NULL")
    }
}

private func callFunction(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let pointer = sqlite3_user_data(context) else { return }
    let box = Unmanaged<FunctionBox>.fromOpaque(pointer).takeUnretainedValue()
    guard let handle = box.handle else { return refuse(context) }
    handle.answer(context) { try box.body(try FunctionArguments(count, arguments)) }
}

/// The group of the call, created at its first row; `nil` if memory is exhausted.
func group<Group: AnyObject>(_ context: OpaquePointer, _ make: () -> Group) -> Group? {
    let byteCount = Int32(MemoryLayout<UnsafeMutableRawPointer?>.size)
    guard let memory = sqlite3_aggregate_context(context, byteCount) else { return nil }
    // The engine zeroes new memory, which then reads as the null pointer.
    let slot = memory.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
    if let known = slot.pointee {
        return Unmanaged<Group>.fromOpaque(known).takeUnretainedValue()
    }
    let made = make()
    slot.pointee = Unmanaged.passRetained(made).toOpaque()
    return made
}

private func stepAggregate(
    context: OpaquePointer?, count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) {
    guard let context, let pointer = sqlite3_user_data(context) else { return }
    let box = Unmanaged<StateMaker<any Aggregate>>.fromOpaque(pointer).takeUnretainedValue()
    guard let handle = box.handle else { return refuse(context) }
    guard let group = group(context, { GroupState(box.make()) }) else {
        return sqlite3_result_error_nomem(context)
    }
    do {
        try handle.inCallback { try group.state.step(try FunctionArguments(count, arguments)) }
    } catch {
        group.hasFailed = true
        handle.fail(context, error)
    }
}

private func finishAggregate(context: OpaquePointer?) {
    guard let context, let pointer = sqlite3_user_data(context) else { return }
    let box = Unmanaged<StateMaker<any Aggregate>>.fromOpaque(pointer).takeUnretainedValue()
    guard let group = group(context, { GroupState(box.make()) }) else {
        return sqlite3_result_error_nomem(context)
    }
    // Called exactly once for each group, even after a failure, so it frees the group's memory.
    defer { Unmanaged.passUnretained(group).release() }
    guard !group.hasFailed else { return }
    guard let handle = box.handle else { return refuse(context) }
    handle.answer(context) { try group.state.result() }
}

/// Fails a call whose connection was closed before the database.
func refuse(_ context: OpaquePointer) {
    sqlite3_result_error(context, "the connection of this function was closed", -1)
}
