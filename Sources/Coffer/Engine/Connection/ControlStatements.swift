import CSQLCipher

/// BEGIN, COMMIT and ROLLBACK, compiled once: every transaction runs two of them.
final class ControlStatements {
    /// The raw value is the index of the compiled statement: a text would be hashed at every begin.
    enum Control: Int, CaseIterable {
        case begin, beginImmediate, beginExclusive, commit, rollback
        case openSavepoint, releaseSavepoint, rollBackToSavepoint

        /// Whether it begins a transaction.
        var isBegin: Bool { rawValue <= Self.beginExclusive.rawValue }

        /// Whether it begins or ends a whole transaction.
        var isWhole: Bool { rawValue <= Self.rollback.rawValue }

        var sql: String {
            switch self {
            case .begin: "BEGIN DEFERRED"
            case .beginImmediate: "BEGIN IMMEDIATE"
            case .beginExclusive: "BEGIN EXCLUSIVE"
            case .commit: "COMMIT"
            case .rollback: "ROLLBACK"
            case .openSavepoint: "SAVEPOINT coffer_member"
            case .releaseSavepoint: "RELEASE coffer_member"
            case .rollBackToSavepoint: "ROLLBACK TO coffer_member"
            }
        }
    }

    /// Whether a transaction was begun that Coffer has not ended.
    var isBegun = false
    private var compiled = [OpaquePointer?](repeating: nil, count: Control.allCases.count)

    /// The compiled statement; `nil` before its first use.
    @inline(__always)
    subscript(control: Control) -> OpaquePointer? { compiled[control.rawValue] }

    func keep(_ statement: OpaquePointer?, for control: Control) {
        compiled[control.rawValue] = statement
    }

    func finalize() {
        for statement in compiled { sqlite3_finalize(statement) }
    }
}

extension Handle {
    /// Begins or ends a transaction or savepoint.
    ///
    /// A BEGIN first loads a suspect schema again. ROLLBACK and ROLLBACK TO also drop or read again
    /// a restored page 1, as `RestoredPages.swift` describes.
    ///
    /// - Throws: `.closed`; the engine's error, such as `.busy`; for a BEGIN also errors of loading
    ///   the schema, such as `.damaged`; for ROLLBACK TO those of `rereadFirstPages()`.
    func run(_ control: ControlStatements.Control) throws(StoreError) {
        guard !isClosed else { throw Connection.closed }
        if control.isBegin {
            if isAdopted { try followOwner() }
            if controls.isBegun || schemaState.isSuspect { try requireAuthenticSchema() }
        } else if control == .rollback || control == .rollBackToSavepoint {
            if control == .rollback {
                judgeSchemaBeforeRollback()
                transactionWillRollBack()
            }
            probing.cleanMissCount = nil
        }
        let code = authorizer.asCoffer { step(control) }
        if control.isWhole, code == SQLITE_OK {
            controls.isBegun = control.isBegin
            if control == .rollback { dropRestoredPages() }
            if !control.isBegin, schemaState.hasChanged { schemaState.hasChanged = false }
        }
        guard code == SQLITE_OK else {
            // The message belongs to the connection, and the reset clears it.
            let failure = error(code, sql: control.sql)
            sqlite3_reset(controls[control])
            throw failure
        }
        if control == .rollBackToSavepoint { try rereadFirstPages() }
    }

    /// Runs the statement, compiled at its first use, and returns `SQLITE_OK` or the engine's code.
    /// A statement that fails is left for the caller to reset.
    @inline(__always)
    private func step(_ control: ControlStatements.Control) -> Int32 {
        if controls[control] == nil {
            var raw: OpaquePointer?
            let code = coffer_prepare_persistent(db, control.sql, -1, &raw, nil)
            guard code == SQLITE_OK else { return code }
            controls.keep(raw, for: control)
        }
        let statement = controls[control]
        let code = sqlite3_step(statement)
        guard code == SQLITE_DONE else { return code }
        sqlite3_reset(statement)
        return SQLITE_OK
    }
}
