import CSQLCipher
import Synchronization

/// Makes a page of zeros an error on SQLCipher 3.
///
/// SQLCipher 3.4.1 takes a page that is all zeros for an empty one, without checking a MAC. A hole
/// that a crash left in the last overflow page of a value then reads as zeros, and not even the
/// probe shows it. (SQLCipher 4 does so with `auto_vacuum` only.) No page that SQLCipher wrote is
/// all zeros, so every whole page is checked as it comes from the file. The check ends at the first
/// byte that is not zero, nearly always the first one.
///
/// The check replaces the open file's methods, a public part of `sqlite3_file`, by a copy whose
/// `xRead` checks. See <https://www.sqlite.org/c3ref/io_methods.html>.
enum ZeroPageCheck {
    /// A copy of a method table, followed by the table that it was copied from.
    private struct CheckedMethods {
        var methods: sqlite3_io_methods
        let original: UnsafePointer<sqlite3_io_methods>
    }

    /// One copy for each of SQLite's method tables (there are a handful). Never freed, because
    /// files may use them until the process ends.
    private static let copies = Mutex<[UInt: UInt]>([:])

    /// Makes every later read of a page of zeros fail with `SQLITE_CORRUPT`, on SQLCipher 3.
    ///
    /// This covers the file of the database `schema`, and its WAL or journal if one is open. Must
    /// be called before any page is read. Pages in the cache, such as those that an owner of the
    /// handle has read, are dropped and read again.
    ///
    /// - Returns: `false` if nothing changed: all these files were checked already, or the engine
    ///   is SQLCipher 4.
    /// - Throws: The engine's error if there is no database of that name.
    @discardableResult
    static func install(on handle: Handle, schema: String = "main") throws(StoreError) -> Bool {
        guard try Engine.capabilities.cipherMajorVersion < 4 else { return false }
        var isNew = false
        try forEachFile(of: handle, schema) { file, methods in
            guard let checked = checkedMethods(for: methods) else { return }
            file.pointee.pMethods = checked
            isNew = true
        }
        if isNew { sqlite3_db_release_memory(handle.db) }
        return isNew
    }

    /// Extends the main file's check to a WAL that a change of the journal mode has opened. Does
    /// nothing if the main file is not checked. Throws as `install(on:schema:)`.
    static func followJournalMode(of handle: Handle) throws(StoreError) {
        guard try Engine.capabilities.cipherMajorVersion < 4 else { return }
        var isChecked: Bool?
        try forEachFile(of: handle, "main") { _, methods in
            // The main file comes first.
            if isChecked == nil { isChecked = isCopy(methods) }
        }
        if isChecked == true { try install(on: handle) }
    }

    /// Ends the check of the database `schema` if its file has `auto_vacuum`: SQLite itself may
    /// then leave pages of zeros at the end of the file. Throws errors of reading the pragma.
    static func removeIfAutoVacuum(on handle: Handle, schema: String = "main") throws(StoreError) {
        guard try Engine.capabilities.cipherMajorVersion < 4,
            try handle.firstInteger("PRAGMA \(try schema.quotedIdentifier()).auto_vacuum") != 0
        else { return }
        try remove(from: handle, schema: schema)
    }

    static func remove(from handle: Handle, schema: String) throws(StoreError) {
        try forEachFile(of: handle, schema) { file, methods in
            guard isCopy(methods) else { return }
            file.pointee.pMethods =
                UnsafeRawPointer(methods)
                .assumingMemoryBound(to: CheckedMethods.self).pointee.original
        }
    }

    /// Calls `body` with the main file of the database `schema`, and then with its WAL or journal
    /// if SQLite has opened it. Throws the engine's error if no database has this name.
    private static func forEachFile(
        of handle: Handle, _ schema: String,
        _ body: (UnsafeMutablePointer<sqlite3_file>, UnsafePointer<sqlite3_io_methods>) -> Void
    ) throws(StoreError) {
        let code = schema.withCString { schema in
            for control in [SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER] {
                var file: UnsafeMutablePointer<sqlite3_file>?
                let code = sqlite3_file_control(handle.db, schema, control, &file)
                guard code == SQLITE_OK else { return code }
                if let file, let methods = file.pointee.pMethods { body(file, methods) }
            }
            return SQLITE_OK
        }
        guard code == SQLITE_OK else { throw handle.error(code) }
    }

    private static func isCopy(_ methods: UnsafePointer<sqlite3_io_methods>) -> Bool {
        copies.withLock { $0.values.contains(UInt(bitPattern: methods)) }
    }

    /// A copy of the table whose `xRead` checks; `nil` if the table is such a copy already.
    private static func checkedMethods(
        for original: UnsafePointer<sqlite3_io_methods>
    ) -> UnsafePointer<sqlite3_io_methods>? {
        let id = UInt(bitPattern: original)
        let copy: UInt? = copies.withLock { copies in
            if copies.values.contains(id) { return nil }
            if let known = copies[id] { return known }
            let made = UnsafeMutablePointer<CheckedMethods>.allocate(capacity: 1)
            made.initialize(to: CheckedMethods(methods: original.pointee, original: original))
            made.pointee.methods.xRead = readChecked
            copies[id] = UInt(bitPattern: made)
            return UInt(bitPattern: made)
        }
        return copy.flatMap { UnsafePointer(bitPattern: $0) }
    }

    private static let readChecked:
        @convention(c) (UnsafeMutablePointer<sqlite3_file>?, UnsafeMutableRawPointer?, Int32, Int64)
            -> Int32 = { file, buffer, byteCount, offset in
                // Only files whose methods are one of our copies come here, and the copy is the
                // first member of `CheckedMethods`.
                guard let file, let buffer, let methods = file.pointee.pMethods else {
                    return SQLITE_MISUSE
                }
                let checked = UnsafeRawPointer(methods).assumingMemoryBound(to: CheckedMethods.self)
                guard let read = checked.pointee.original.pointee.xRead else {
                    return SQLITE_MISUSE
                }
                let code = read(file, buffer, byteCount, offset)
                // Shorter reads are of the header; a read beyond the end has another code.
                guard code == SQLITE_OK, byteCount >= 512 else { return code }
                let bytes = UnsafeRawBufferPointer(start: buffer, count: Int(byteCount))
                return bytes.allSatisfy { $0 == 0 } ? SQLITE_CORRUPT : SQLITE_OK
            }
}
