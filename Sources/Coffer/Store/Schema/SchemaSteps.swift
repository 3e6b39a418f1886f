/// Steps that change a schema one after the other; a file records which of them it has run.
protocol SchemaSteps {
    associatedtype Step

    /// Whether foreign keys are not enforced during a step, but checked at its end.
    var pausesForeignKeys: Bool { get }

    /// The steps that the file has not run, in order.
    ///
    /// - Throws: `.needsNewerProgram` if it has run others.
    func pending(_ connection: Connection) throws -> ArraySlice<Step>

    /// Runs a step in a transaction, and records it in the file.
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
    /// - Returns: `false` if no step is pending: another process has run it in the meantime.
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

    /// Runs all steps that the file lacks, and undoes them at the end of the transaction.
    ///
    /// - Returns: The number of steps.
    func rehearse(_ transaction: inout WriteTransaction, _ willRun: WillRun) throws -> Int {
        var count = 0
        while try transaction.savepoint({ inner in try runNext(&inner, willRun) }) { count += 1 }
        try transaction.rollback()
        return count
    }
}

extension Connection {
    /// Runs the steps that the file lacks, each in its own transaction.
    ///
    /// - Returns: The number of steps.
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
    /// Runs the steps that the file lacks, each in its own transaction.
    ///
    /// - Returns: The number of steps.
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

    /// The same, without blocking a thread of the cooperative pool.
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
