import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A table without a file that has the keys of a `KeyList` as its rows, for one run of a statement;
/// or the values of a list that `ValueList` has packed.
///
/// `SELECT … FROM main.coffer_keys(?1) CROSS JOIN t ON t.id = +coffer_keys.value` looks up the keys
/// in their order. The statement need not be bound, stepped and reset for each key.
///
/// **Only Coffer's own statements see keys.** The argument is a random number of 64 bits, the
/// ticket, which Coffer binds and which holds for one run. SQL of a view, a trigger or the program
/// does not know it, so the table is empty there, even while Coffer's statement runs. No pointer
/// goes through SQL. The module has no `xCreate`, so CREATE VIRTUAL TABLE cannot name it: see
/// <https://www.sqlite.org/vtab.html#eponymous_only_virtual_tables>. A table that a crafted schema
/// makes of it has no row either.
///
/// `main.coffer_keys(count, list)` has the values of a packed list, which is an argument. SQL that
/// calls it gets back what it has passed.
final class KeyTable {
    static let name = "coffer_keys"
    /// Without its database, a table of the same name in any database would hide it.
    static let qualifiedName = "main.\(name)"

    /// The lists that may be read now, by their tickets. SQLite keeps this object as long as it
    /// knows the module, and so does each table of it.
    fileprivate final class Lists {
        var byTicket: [Int64: KeyList] = [:]
        /// The addresses of SQLite's structs for the tables.
        var tables: Set<UInt> = []
    }

    private let lists = Lists()

    fileprivate init(_ handle: Handle) throws(StoreError) {
        // SQLite releases the lists, even if it refuses the module.
        let code = sqlite3_create_module_v2(
            handle.db, Self.name, keyModule, Unmanaged.passRetained(lists).toOpaque()
        ) { if let lists = $0 { Unmanaged<Lists>.fromOpaque(lists).release() } }
        try handle.requireRegistered(code)
    }

    /// Lends a list to a statement while `body` runs it. `body` must reset the statement.
    ///
    /// - Parameter statement: Its only parameter is the argument of `coffer_keys`.
    /// - Throws: Errors of `body`.
    func lend<T>(
        _ list: KeyList, to statement: Statement, _ body: () throws(StoreError) -> T
    ) throws(StoreError) -> T {
        var ticket = Int64.random(in: .min ... .max)
        while lists.byTicket[ticket] != nil { ticket = Int64.random(in: .min ... .max) }
        try statement.bindArguments([.integer(ticket)])
        lists.byTicket[ticket] = list
        defer { lists.byTicket[ticket] = nil }
        return try body()
    }

    /// Whether EXPLAIN names a table of this module with this operand.
    func isTable(_ operand: String?) -> Bool {
        guard let operand, operand.hasPrefix("vtab:"),
            let address = UInt(operand.dropFirst("vtab:".count), radix: 16)
        else { return false }
        return lists.tables.contains(address)
    }

    /// The error if a row comes when no scan of the keys is at a key.
    static func noKey(_ statement: Statement) -> StoreError {
        StoreError(
            .misuse, "the table \(name) belongs to Coffer, and the database has another one",
            hint: "Give that table another name.", sql: statement.sql)
    }
}

extension Handle {
    /// The table of keys of this handle. The first call registers its module, and throws the
    /// engine's error if that fails.
    func keyTable() throws(StoreError) -> KeyTable {
        if let knownKeyTable { return knownKeyTable }
        let made = try KeyTable(self)
        knownKeyTable = made
        return made
    }
}

/// Whether a connection reads a `KeyTable`.
private final class KnownKeyTable {
    let isUsable: Bool

    init(isUsable: Bool) { self.isUsable = isUsable }
}

extension Connection {
    /// Whether SQL finds Coffer's table of keys under its name. An object of the file with that
    /// name would hide it, and a program may have a module of that name.
    ///
    /// - Throws: Errors of reading the schema.
    func readsKeyTable() throws(StoreError) -> Bool {
        let id = ObjectIdentifier(KnownKeyTable.self)
        if let known = try attachment(id) as? KnownKeyTable { return known.isUsable }
        let hiding = try firstRow(
            "SELECT 1 FROM main.sqlite_master WHERE name = \(KeyTable.name) COLLATE NOCASE",
            isReadOnly: false)
        let table = try? current().keyTable()
        let known = KnownKeyTable(isUsable: hiding == nil && table != nil)
        attach(known, as: id)
        return known.isUsable
    }
}

// MARK: The module

/// SQLite's struct for a table comes first, as SQLite demands.
private struct KeyVirtualTable {
    var base = sqlite3_vtab()
    let lists: Unmanaged<KeyTable.Lists>
}

/// SQLite's struct for a cursor comes first, as SQLite demands.
private struct KeyCursor {
    var base = sqlite3_vtab_cursor()
    let lists: Unmanaged<KeyTable.Lists>
    /// Retained, so that a list that is freed after an error stays valid as long as the cursor.
    /// `nil` without a valid ticket.
    var list: Unmanaged<KeyList>?
    /// Memory of the list, which frees it.
    var scan: UnsafeMutablePointer<KeyScan>?
    var integers: UnsafeMutablePointer<Int64>?
    var ticket: Int64 = 0
    /// A copy of a packed list, whose `scan` the cursor owns; `nil` if there is none.
    var packed: OpaquePointer?

    /// Must be called before the cursor gets another list, and at its end.
    mutating func release() {
        if let packed {
            sqlite3_value_free(packed)
            scan?.deallocate()
        }
        list?.release()
        (list, scan, integers, packed) = (nil, nil, nil, nil)
    }
}

/// Columns of the table.
private enum KeyColumn {
    static let value: Int32 = 0
    /// Also the number of values of a packed list.
    static let ticket: Int32 = 1
    static let list: Int32 = 2
    static let declaration = "CREATE TABLE coffer_keys(value, ticket HIDDEN, list HIDDEN)"
}

/// Never changed after it is made, and never freed: connections use it until the process ends.
private nonisolated(unsafe) let keyModule: UnsafeMutablePointer<sqlite3_module> = {
    let module = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
    module.initialize(to: sqlite3_module())
    module.pointee.xConnect = connectKeys
    module.pointee.xDisconnect = disconnectKeys
    // SQLite calls it, without asking for `xCreate`, for a table that a crafted schema has.
    module.pointee.xDestroy = disconnectKeys
    module.pointee.xBestIndex = planKeys
    module.pointee.xOpen = openKeys
    module.pointee.xClose = { cursor in
        guard let cursor = keyCursor(cursor) else { return SQLITE_OK }
        cursor.pointee.release()
        cursor.deallocate()
        return SQLITE_OK
    }
    module.pointee.xFilter = beginKeys
    module.pointee.xNext = { cursor in
        keyCursor(cursor)?.pointee.scan?.pointee.index &+= 1
        return SQLITE_OK
    }
    module.pointee.xEof = { cursor in
        guard let scan = keyCursor(cursor)?.pointee.scan else { return 1 }
        return scan.pointee.index < scan.pointee.count ? 0 : 1
    }
    module.pointee.xColumn = giveKey
    module.pointee.xRowid = { cursor, row in
        row?.pointee = Int64(keyCursor(cursor)?.pointee.scan?.pointee.index ?? 0)
        return SQLITE_OK
    }
    return module
}()

/// SQLite passes only cursors that `openKeys` has made.
@inline(__always)
private func keyCursor(
    _ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?
) -> UnsafeMutablePointer<KeyCursor>? {
    UnsafeMutableRawPointer(cursor)?.assumingMemoryBound(to: KeyCursor.self)
}

private func connectKeys(
    db: OpaquePointer?, context: UnsafeMutableRawPointer?, count: Int32,
    arguments: UnsafePointer<UnsafePointer<CChar>?>?,
    table: UnsafeMutablePointer<UnsafeMutablePointer<sqlite3_vtab>?>?,
    message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> Int32 {
    let code = sqlite3_declare_vtab(db, KeyColumn.declaration)
    guard code == SQLITE_OK else { return code }
    guard let context, let table else { return SQLITE_ERROR }
    let made = UnsafeMutablePointer<KeyVirtualTable>.allocate(capacity: 1)
    let lists = Unmanaged<KeyTable.Lists>.fromOpaque(context)
    made.initialize(to: KeyVirtualTable(lists: lists.retain()))
    lists._withUnsafeGuaranteedRef { _ = $0.tables.insert(UInt(bitPattern: made)) }
    table.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab.self)
    return SQLITE_OK
}

private func disconnectKeys(table: UnsafeMutablePointer<sqlite3_vtab>?) -> Int32 {
    // SQLite passes only tables that `connectKeys` has made.
    let made = UnsafeMutableRawPointer(table)?.assumingMemoryBound(to: KeyVirtualTable.self)
    guard let made else { return SQLITE_OK }
    made.pointee.lists._withUnsafeGuaranteedRef { _ = $0.tables.remove(UInt(bitPattern: made)) }
    made.pointee.lists.release()
    made.deallocate()
    return SQLITE_OK
}

/// Lets SQLite pass the ticket, and the packed list after it, if there is one. A table without a
/// ticket is empty.
private func planKeys(
    table: UnsafeMutablePointer<sqlite3_vtab>?, info: UnsafeMutablePointer<sqlite3_index_info>?
) -> Int32 {
    guard let info else { return SQLITE_ERROR }
    info.pointee.estimatedCost = 1
    info.pointee.estimatedRows = 1000
    var count: Int32 = 0
    for column in [KeyColumn.ticket, KeyColumn.list] {
        let found = (0..<Int(info.pointee.nConstraint)).first { index in
            let constraint = info.pointee.aConstraint[index]
            return constraint.iColumn == column && constraint.usable != 0
                && Int32(constraint.op) == SQLITE_INDEX_CONSTRAINT_EQ
        }
        guard let found else { break }
        count += 1
        info.pointee.aConstraintUsage[found].argvIndex = count
        info.pointee.aConstraintUsage[found].omit = 1
    }
    return SQLITE_OK
}

private func openKeys(
    table: UnsafeMutablePointer<sqlite3_vtab>?,
    cursor: UnsafeMutablePointer<UnsafeMutablePointer<sqlite3_vtab_cursor>?>?
) -> Int32 {
    // SQLite passes only tables that `connectKeys` has made.
    let table = UnsafeMutableRawPointer(table)?.assumingMemoryBound(to: KeyVirtualTable.self)
    guard let table, let cursor else { return SQLITE_ERROR }
    let made = UnsafeMutablePointer<KeyCursor>.allocate(capacity: 1)
    // Unretained: SQLite closes the cursors of a table before the table.
    made.initialize(to: KeyCursor(lists: table.pointee.lists))
    cursor.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(
        to: sqlite3_vtab_cursor.self)
    return SQLITE_OK
}

private func beginKeys(
    cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?, plan: Int32, name: UnsafePointer<CChar>?,
    count: Int32, arguments: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    guard let cursor = keyCursor(cursor) else { return SQLITE_ERROR }
    cursor.pointee.release()
    guard count > 0, let argument = arguments?[0],
        sqlite3_value_type(argument) == SQLITE_INTEGER
    else { return SQLITE_OK }
    let ticket = sqlite3_value_int64(argument)
    if count > 1 { return begin(cursor, ticket, packed: arguments?[1]) }
    let list = cursor.pointee.lists._withUnsafeGuaranteedRef { $0.byTicket[ticket] }
    guard let list else { return SQLITE_OK }
    cursor.pointee.list = .passRetained(list)
    cursor.pointee.scan = list.scan
    cursor.pointee.integers = list.integers
    cursor.pointee.ticket = ticket
    list.scan.pointee.index = 0
    return SQLITE_OK
}

/// Begins a scan of a packed list. The engine's argument is valid only until this returns.
///
/// SQL that does not read the values would scan a list that is too short to its end.
private func begin(
    _ cursor: UnsafeMutablePointer<KeyCursor>, _ count: Int64, packed: OpaquePointer?
) -> Int32 {
    guard let packed, count > 0 else { return SQLITE_OK }
    guard count <= ValueList.maximumCount(byteCount: Int64(sqlite3_value_bytes(packed))) else {
        return SQLITE_ERROR
    }
    guard let copy = sqlite3_value_dup(packed) else { return SQLITE_NOMEM }
    let scan = UnsafeMutablePointer<KeyScan>.allocate(capacity: 1)
    scan.initialize(to: KeyScan(index: 0, count: Int(count)))
    cursor.pointee.packed = copy
    cursor.pointee.scan = scan
    cursor.pointee.ticket = count
    return SQLITE_OK
}

private func giveKey(
    cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?, context: OpaquePointer?, column: Int32
) -> Int32 {
    guard let cursor = keyCursor(cursor), let scan = cursor.pointee.scan, let context,
        scan.pointee.index < scan.pointee.count
    else { return SQLITE_OK }
    let index = scan.pointee.index
    if column == KeyColumn.ticket {
        sqlite3_result_int64(context, cursor.pointee.ticket)
    } else if let packed = cursor.pointee.packed {
        if column == KeyColumn.list {
            sqlite3_result_value(context, packed)
        } else {
            ValueList.give(packed, Int64(index), context)
        }
    } else if column == KeyColumn.list {
        // Only a packed list has it.
    } else if let integers = cursor.pointee.integers {
        sqlite3_result_int64(context, integers[index])
    } else {
        cursor.pointee.list?._withUnsafeGuaranteedRef { $0.values[index].setResult(of: context) }
    }
    return SQLITE_OK
}
