import CSQLCipher

/// Support for texts of many statements, such as a dump, and for tools that report what a statement
/// changed.
extension Connection {
    /// Compiles the first statement of a text and returns where the rest begins.
    ///
    /// Unlike `prepare(_:)` it also accepts transaction SQL in the body of a transaction. The
    /// caller must check `transactionVerb` and must not step a statement that would end the body's
    /// transaction (which fails with `.misuse`).
    ///
    /// - Parameter text: Ends with NUL, so that the engine neither measures nor copies the rest.
    /// - Returns: No statement if there are only spaces, comments or a semicolon; a byte count of 0
    ///   at the end of the text. The statement's own `sql` is empty, because the text holds data.
    /// - Throws: `StoreError` `.sql`, `.misuse` as `prepare(_:)`.
    /// - Note: The corresponding C function is `sqlite3_prepare_v2`.
    package func prepareFirst(
        of text: UnsafePointer<CChar>
    ) throws -> (statement: Statement?, byteCount: Int) {
        let handle = try current()
        try handle.followOwner()
        handle.authorizer.begin()
        handle.authorizer.isInBody = false
        defer { handle.authorizer.isInBody = transactionState.isInBody }
        var raw: OpaquePointer?
        var tail: UnsafePointer<CChar>?
        let code = try handle.compiling(&raw, isPragma: Self.beginsWithPragma(text)) { raw in
            handle.authorizer.whileActive {
                sqlite3_prepare_v2(handle.db, text, -1, &raw, &tail)
            }
        }
        guard code == SQLITE_OK else { throw handle.error(code) }
        let byteCount = tail.map { $0 - text } ?? 0
        guard let raw else { return (nil, byteCount) }
        let statement = Statement(handle: handle, sql: "", compiled: raw)
        adopt(statement)
        return (statement, byteCount)
    }

    private static func beginsWithPragma(_ text: UnsafePointer<CChar>) -> Bool {
        // Enough for a comment before the verb, without the megabytes of a script.
        let beginning = UnsafeBufferPointer(start: text, count: strnlen(text, 4096))
        return String(decoding: UnsafeRawBufferPointer(beginning), as: UTF8.self).isPragma
    }

    /// Rows changed since the connection was opened, including those of triggers and foreign keys.
    /// The corresponding C function is `sqlite3_total_changes`.
    public var totalChangeCount: Int {
        handle.map { Int(coffer_total_changes($0.db)) } ?? 0
    }

    /// Rows that the last INSERT, UPDATE or DELETE changed directly. The corresponding C function
    /// is `sqlite3_changes`.
    public var lastChangeCount: Int {
        handle.map { Int(coffer_changes($0.db)) } ?? 0
    }
}
