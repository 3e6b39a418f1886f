/// One step of a schema's history, numbered by the file's `user_version`.
///
/// For programs that move in with a file whose schema they number themselves already:
///
/// ```swift
/// let steps = [
///     VersionStep(1) { tx in try tx.execute("CREATE TABLE note(title TEXT)") },
///     VersionStep(2) { tx in
///         try tx.addColumnIfMissing(ColumnDefinition("author", .text), to: "note")
///     },
/// ]
/// try store.migrate(byUserVersion: steps)
/// ```
///
/// A step that was released is never changed: files have run it. What is to be different is a new
/// step. Nothing is dropped but what a step drops.
public struct VersionStep: Sendable {
    /// The `user_version` of a file that has run the step; above 0.
    public let version: Int32
    let body: @Sendable (inout WriteTransaction) throws -> Void

    /// Makes a step.
    ///
    /// - Parameters:
    ///   - version: The `user_version` of a file that has run it; above 0.
    ///   - body: The change, in a transaction of its own. `PRAGMA foreign_keys` does nothing in a
    ///     transaction: `PRAGMA defer_foreign_keys = ON` puts their check off to its end.
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
    /// The version is read again inside each transaction, under the write lock: of two connections
    /// that do this at once, each step is run by one. If a step throws, it is undone, the earlier
    /// ones stand, and the version says so. Nothing is written to a file that is up to date.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: What a step throws; `StoreError` `.needsNewerProgram` if the file's version is
    ///   above that of the last step; `.misuse` if the versions do not ascend from 1 or more, or
    ///   inside a transaction; `.busy`, `.constraint`, `.full`, `.io`, `.damaged`, `.readOnly`.
    /// - Note: The corresponding SQL is `PRAGMA user_version`.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) throws -> Int {
        let plan = try VersionPlan(steps)
        var count = 0
        while try !transaction(.deferred, { try plan.isDone(at: userVersion) }) {
            try transaction(.immediate) {
                let scope = TransactionScope(self, stop: StopSignal(), cancellation: nil)
                defer { scope.end() }
                var transaction = WriteTransaction(scope: scope, level: scope.level)
                if try plan.runNext(&transaction) { count += 1 }
            }
        }
        return count
    }
}

extension Store {
    /// Runs the steps that the file has not run yet, each in a transaction that also sets the
    /// file's `user_version`.
    ///
    /// The version is read again inside each transaction, under the write lock: of two processes
    /// that do this at once, each step is run by one. If a step throws, it is undone, the earlier
    /// ones stand, and the version says so. Nothing is written to a file that is up to date.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: What a step throws; `StoreError` `.needsNewerProgram` if the file's version is
    ///   above that of the last step; `.misuse` if the versions do not ascend from 1 or more, or
    ///   inside a body of this store; otherwise as `write` and `read`.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) throws -> Int {
        let plan = try VersionPlan(steps)
        // Inside a body the steps would be parts of its transaction.
        try core.requireOutside()
        var count = 0
        while try !core.read({ tx in try plan.isDone(at: tx.connection().userVersion) }) {
            if try core.write(.alone, { tx in try plan.runNext(&tx) }) { count += 1 }
        }
        return count
    }

    /// Runs the steps that the file has not run yet, without blocking a thread of the cooperative
    /// pool.
    ///
    /// - Parameter steps: In ascending order of their versions.
    /// - Returns: How many steps this call ran.
    /// - Throws: As the synchronous form; `StoreError` `.cancelled` if the task was cancelled. The
    ///   steps that had ended stand.
    @discardableResult
    public func migrate(byUserVersion steps: [VersionStep]) async throws -> Int {
        let plan = try VersionPlan(steps)
        var count = 0
        while try await !core.read({ tx in try plan.isDone(at: tx.connection().userVersion) }) {
            if try await core.write(.alone, { tx in try plan.runNext(&tx) }) { count += 1 }
        }
        return count
    }
}

/// Steps whose order was checked.
private struct VersionPlan: Sendable {
    private let steps: [VersionStep]

    /// - Throws: `.misuse` unless the versions ascend from 1 or more.
    init(_ steps: [VersionStep]) throws(StoreError) {
        var last: Int32 = 0
        for step in steps {
            guard step.version > last else {
                throw StoreError(
                    .misuse, "step \(step.version) does not come after \(last)",
                    hint: "The versions of the steps ascend, from 1 or more.")
            }
            last = step.version
        }
        self.steps = steps
    }

    /// Whether a file of this version has run all steps.
    func isDone(at version: Int32) throws(StoreError) -> Bool {
        let last = steps.last?.version ?? 0
        guard version <= last else {
            throw StoreError(
                .needsNewerProgram,
                "the file's user_version is \(version), the last step known here is \(last)",
                hint: "A newer version of the program has changed the file: use that one.")
        }
        return version == last
    }

    /// Runs the first step that the file lacks, in the write transaction that it is given.
    ///
    /// - Returns: `false` if there was none: another process has run it meanwhile.
    func runNext(_ transaction: inout WriteTransaction) throws -> Bool {
        let version = try transaction.connection().userVersion
        guard try !isDone(at: version), let step = steps.first(where: { $0.version > version })
        else { return false }
        try step.body(&transaction)
        try transaction.connection().setUserVersion(step.version)
        return true
    }
}
