import CSQLCipher

/// Reports the rows of some tables that a connection inserts, updates and deletes, one by one,
/// right after each change.
///
/// SQLite calls it for tables with row ids only. It is silent for rows that REPLACE deletes and for
/// a DELETE of all rows, passes the new row id of an UPDATE only, and reports changes that SQLite
/// undoes later. `StatementFootprint.rowChanges(of:)` tells for which statements it is complete.
/// See <https://www.sqlite.org/c3ref/update_hook.html>.
final class UpdateHook {
    /// Names of tables of the main file, as the schema spells them, ended by NUL.
    private let names: [[CChar]]
    private let body: (ReportedChange.Kind, Int, Int64) -> Void

    /// - Parameters:
    ///   - tables: Names of tables of the main file, as the schema spells them.
    ///   - body: Called with what has happened, the index of the table in `tables`, and the row id.
    ///     Must not use the connection.
    init(tables: [String], _ body: @escaping (ReportedChange.Kind, Int, Int64) -> Void) {
        names = tables.map { Array($0.utf8CString) }
        self.body = body
    }

    /// Begins to report the changes on a handle. The caller keeps the hook until `remove(from:)`.
    func install(on handle: Handle) {
        sqlite3_update_hook(handle.db, reportUpdate, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Ends the reports on a handle.
    ///
    /// - Returns: `false` if other code has replaced the hook, so that changes were not reported.
    func remove(from handle: Handle) -> Bool {
        let former = sqlite3_update_hook(handle.db, nil, nil)
        return former == Unmanaged.passUnretained(self).toOpaque()
    }

    fileprivate func report(
        _ operation: Int32, _ database: UnsafePointer<CChar>, _ table: UnsafePointer<CChar>,
        _ row: Int64
    ) {
        guard strcmp(database, "main") == 0 else { return }
        for index in names.indices where strcmp(table, names[index]) == 0 {
            switch operation {
            case SQLITE_INSERT: body(.insertion, index, row)
            case SQLITE_UPDATE: body(.update, index, row)
            default: body(.deletion, index, row)
            }
            return
        }
    }
}

private func reportUpdate(
    context: UnsafeMutableRawPointer?, operation: Int32, database: UnsafePointer<CChar>?,
    table: UnsafePointer<CChar>?, row: Int64
) {
    guard let context, let database, let table else { return }
    // Unretained: the owner of the hook removes it from the handle before it lets go of it.
    let hook = Unmanaged<UpdateHook>.fromOpaque(context).takeUnretainedValue()
    hook.report(operation, database, table, row)
}
