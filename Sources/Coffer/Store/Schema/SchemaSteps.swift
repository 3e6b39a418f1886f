/// Steps that change a schema one after the other; a file records which of them it has run.
protocol SchemaSteps {
    associatedtype Step

    /// Whether foreign keys are not enforced during a step, but checked at its end.
    var pausesForeignKeys: Bool { get }

    /// The steps that the file has not run, in order; empty if it has run all.
    ///
    /// - Throws: `.needsNewerProgram` if the file has run steps that are not in the list, or not at
    ///   their place in it.
    func pending(_ connection: Connection) throws -> ArraySlice<Step>

    /// Runs a step in the given transaction, and records it in the file.
    ///
    /// - Throws: What the step throws.
    func run(_ step: Step, _ transaction: inout WriteTransaction) throws
}

extension SchemaSteps {
    /// Called before a step runs, with the number of pending steps, including this one.
    typealias WillRun = (_ step: Step, _ pendingCount: Int) -> Void

    func isDone(_ connection: Connection) throws -> Bool {
        try pending(connection).isEmpty
    }

    /// Runs the first step that the file lacks, in the given write transaction.
    ///
    /// - Returns: Whether a step ran; `false` if none is pending, because another process has run
    ///   the last one in the meantime.
    /// - Throws: What the step throws; `.misuse` if the step called `rollback()`; `.constraint` if
    ///   a foreign key refers to nothing that did not before; `.needsNewerProgram` as
    ///   `pending(_:)`.
    func runNext(_ transaction: inout WriteTransaction, _ willRun: WillRun) throws -> Bool {
        let connection = try transaction.connection()
        let pending = try pending(connection)
        guard let step = pending.first else { return false }
        willRun(step, pending.count)
        let orphans = try Orphans(connection)
        try run(step, &transaction)
        guard !transaction.access.scope.isUndone(level: transaction.access.level) else {
            throw StoreError(
                .misuse, "a migration step cannot roll itself back with rollback()",
                hint: "Throw an error: it rolls the step back and ends the migration.")
        }
        try orphans.requireNoOthers(connection)
        return true
    }

    /// Runs all steps that the file lacks, and asks for the transaction to be undone at its end.
    ///
    /// - Returns: The number of steps that ran.
    /// - Throws: As `runNext`.
    func rehearse(_ transaction: inout WriteTransaction, _ willRun: WillRun) throws -> Int {
        var count = 0
        while try transaction.savepoint({ inner in try runNext(&inner, willRun) }) { count += 1 }
        try transaction.rollback()
        return count
    }
}

extension Connection {
    /// Runs the steps that the file lacks, each in its own transaction. A dry run uses one
    /// transaction for all and undoes it.
    ///
    /// - Returns: The number of steps that this call ran.
    /// - Throws: As `SchemaSteps.runNext`; the earlier steps remain. `.misuse` inside a
    ///   transaction; the errors of BEGIN and COMMIT.
    func run<S: SchemaSteps>(
        _ steps: S, isDryRun: Bool = false, _ willRun: S.WillRun = { _, _ in }
    ) throws -> Int {
        var count = 0
        while try !transaction(.deferred, { try steps.isDone(self) }) {
            if isDryRun { return try write(steps) { tx in try steps.rehearse(&tx, willRun) } }
            if try write(steps, { tx in try steps.runNext(&tx, willRun) }) { count += 1 }
        }
        return count
    }

    private func write<T>(
        _ steps: some SchemaSteps, _ body: (inout WriteTransaction) throws -> T
    ) throws -> T {
        try beginShared(.immediate, pausesForeignKeys: steps.pausesForeignKeys)
        // If this fails, it is tried again before the next transaction begins.
        defer { try? handle?.endMigrationMode() }
        var undone: T?
        do {
            // `part` ends the statements that are still positioned on a row. They would keep a
            // transaction open, in which foreign keys cannot be switched on.
            let value = try member(isFirst: true) {
                let scope = TransactionScope(self, stop: StopSignal(), cancellation: nil)
                defer { scope.end() }
                var transaction = WriteTransaction(scope: scope, level: scope.level)
                let value = try body(&transaction)
                guard scope.isUndone(level: 0) else { return value }
                undone = value
                throw TransactionScope.Undone()
            }
            try commitShared()
            return value
        } catch is TransactionScope.Undone {
            // Always set right before `Undone` is thrown.
            guard let undone else { throw Self.rolledBack(cause: nil) }
            return undone
        }
    }
}

extension Store {
    /// Runs the steps that the file lacks, each in its own transaction. A dry run uses one
    /// transaction for all and undoes it.
    ///
    /// - Returns: The number of steps that this call ran.
    /// - Throws: As `SchemaSteps.runNext`; the earlier steps remain. `.misuse` inside a body of
    ///   this store; otherwise as `write` and `read`.
    func run<S: SchemaSteps>(
        _ steps: S, isDryRun: Bool = false, _ willRun: S.WillRun = { _, _ in }
    ) throws -> Int {
        // Inside a body the steps would be savepoints of its transaction.
        try core.requireOutside()
        var count = 0
        while try !core.read({ tx in try steps.isDone(tx.connection()) }) {
            if isDryRun {
                return try core.write(steps.request) { tx in try steps.rehearse(&tx, willRun) }
            }
            if try core.write(steps.request, { tx in try steps.runNext(&tx, willRun) }) {
                count += 1
            }
        }
        return count
    }

    /// Does the same without blocking a thread of the cooperative pool.
    ///
    /// - Throws: As the synchronous form; `CancellationError` if the task was cancelled.
    func run<S: SchemaSteps & Sendable>(
        _ steps: S, isDryRun: Bool = false,
        _ willRun: @escaping @Sendable (S.Step, Int) -> Void = { _, _ in }
    ) async throws -> Int {
        var count = 0
        while try await !core.read({ tx in try steps.isDone(tx.connection()) }) {
            if isDryRun {
                return try await core.write(steps.request) { tx in
                    try steps.rehearse(&tx, willRun)
                }
            }
            if try await core.write(steps.request, { tx in try steps.runNext(&tx, willRun) }) {
                count += 1
            }
        }
        return count
    }
}

extension SchemaSteps {
    fileprivate var request: WriteQueue.Request {
        WriteQueue.Request(isSharing: false, pausesForeignKeys: pausesForeignKeys)
    }
}
