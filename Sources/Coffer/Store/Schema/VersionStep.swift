/// One step of a schema's history, numbered by the file's `user_version`.
///
/// For programs that adopt Coffer with a file whose schema they already number themselves:
///
/// ```swift
/// let steps = [
///     VersionStep(1) { tx in try tx.execute("CREATE TABLE note(title TEXT)") },
///     VersionStep(2) { tx in
///         try tx.table("note").addColumnIfMissing(ColumnDefinition("author", .text))
///     },
/// ]
/// try store.migrate(byUserVersion: steps)
/// ```
///
/// Never change a released step: files have run it. To change something, add a new step. Nothing is
/// dropped except by a step.
public struct VersionStep: Sendable {
    /// The `user_version` of a file that has run the step; above 0.
    public let version: Int32
    let body: @Sendable (inout WriteTransaction) throws -> Void

    /// Creates a step.
    ///
    /// - Parameters:
    ///   - version: The `user_version` of a file that has run it; above 0.
    ///   - body: The change, in its own transaction. `PRAGMA foreign_keys` does nothing in a
    ///     transaction; `PRAGMA defer_foreign_keys = ON` defers the checks to its end. But DROP
    ///     TABLE still deletes rows that refer to the table's rows with ON DELETE CASCADE; in a
    ///     ``Migration`` it does not.
    public init(
        _ version: Int32, _ body: @escaping @Sendable (inout WriteTransaction) throws -> Void
    ) {
        self.version = version
        self.body = body
    }
}

extension Connection {
    /// Runs the steps that the file has not run yet, each in a transaction that also sets the
    /// file's `user_version`.
    ///
    /// The version is read again inside each transaction, under the write lock: if two connections
    /// migrate at once, each step is run by one of them. If a step throws, it is undone, the
    /// earlier ones remain, and the version shows that. Nothing is written to a file that is up to
    /// date.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: What a step throws; `StoreError` `.needsNewerProgram` if the file's version is
    ///   above that of the last step; `.misuse` if the versions do not ascend from 1 or more, or
    ///   inside a transaction; `.busy`, `.constraint`, `.full`, `.io`, `.damaged`, `.readOnly`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) throws -> Int {
        try run(VersionPlan(steps))
    }
}

extension Store {
    /// Runs the steps that the file has not run yet, each in a transaction that also sets the
    /// file's `user_version`.
    ///
    /// The version is read again inside each transaction, under the write lock: if two processes
    /// migrate at once, each step is run by one of them. If a step throws, it is undone, the
    /// earlier ones remain, and the version shows that. Nothing is written to a file that is up to
    /// date.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: What a step throws; `StoreError` `.needsNewerProgram` if the file's version is
    ///   above that of the last step; `.misuse` if the versions do not ascend from 1 or more, or
    ///   inside a body of this store; otherwise as `write` and `read`.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) throws -> Int {
        try run(VersionPlan(steps))
    }

    /// Runs the steps that the file has not run yet, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled. The
    ///   completed steps remain.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) async throws -> Int {
        try await run(VersionPlan(steps))
    }
}

/// Steps whose order was checked.
private struct VersionPlan: SchemaSteps, Sendable {
    private let steps: [VersionStep]

    var pausesForeignKeys: Bool { false }

    /// Checks the order of the versions.
    ///
    /// - Throws: `.misuse` unless the versions ascend from 1 or more.
    init(_ steps: [VersionStep]) throws(StoreError) {
        var last: Int32 = 0
        for step in steps {
            guard step.version > last else {
                throw StoreError(
                    .misuse, "step \(step.version) does not come after \(last)",
                    hint: "Number the steps in ascending order, from 1.")
            }
            last = step.version
        }
        self.steps = steps
    }

    func pending(_ connection: Connection) throws -> ArraySlice<VersionStep> {
        let version = try connection.userVersion
        let last = steps.last?.version ?? 0
        guard version <= last else {
            throw StoreError(
                .needsNewerProgram,
                "the file's user_version is \(version), the last step known here is \(last)",
                hint: "A newer version of the program has changed the file: use that one.")
        }
        return steps.drop { $0.version <= version }
    }

    func run(_ step: VersionStep, _ transaction: inout WriteTransaction) throws {
        try step.body(&transaction)
        try transaction.connection().setUserVersion(step.version)
    }
}
