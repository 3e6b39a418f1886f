import CSQLCipher

/// Turns a text into exactly one statement.
enum SQLCompiler {
    /// Compiles a text that is exactly one statement. A pragma takes no effect before that is
    /// known.
    ///
    /// - Parameter persistent: Whether the statement will be used many times.
    /// - Throws: `.sql` if the text does not compile or is not exactly one statement, `.misuse`
    ///   if the authorizer refuses it, `.damaged` if the schema is damaged.
    static func compile(
        _ handle: Handle, sql: String, persistent: Bool
    ) throws(StoreError) -> OpaquePointer {
        var text = sql
        // Many pragmas take effect while they are compiled, which must not happen before the whole
        // text is known to be one statement: https://www.sqlite.org/pragma.html
        if text.isPragma { try requireOne(handle, &text) }
        let isPragma = text.isPragma
        let (result, isComplete) = try text.withUTF8 { bytes in
            Result { () throws(StoreError) in
                try compile(handle, bytes, persistent: persistent, isPragma: isPragma) {
                    handle.authorizer.whileActive($0)
                }
            }
        }.get()
        guard case .success(let raw) = result else { throw try result.error(handle, sql: sql) }
        guard isComplete else {
            sqlite3_finalize(raw)
            throw notOne(sql)
        }
        return raw
    }

    /// Compiles a pragma without its effect, to check that nothing follows its first statement.
    ///
    /// - Throws: `.sql` if another statement or a NUL follows; `.damaged` if the schema is damaged.
    private static func requireOne(
        _ handle: Handle, _ text: inout String
    ) throws(StoreError) {
        let (result, isComplete) = try text.withUTF8 { bytes in
            Result { () throws(StoreError) in
                try compile(handle, bytes, persistent: false, isPragma: true) {
                    handle.authorizer.whileValidating($0)
                }
            }
        }.get()
        // The compilation that follows reports a text that does not compile.
        if case .success(let raw) = result { sqlite3_finalize(raw) }
        guard isComplete else { throw notOne(text) }
        handle.authorizer.begin()
    }

    private static func notOne(_ sql: String) -> StoreError {
        StoreError(
            .sql, "the text holds more than one statement, or a NUL",
            hint: "Run one statement at a time.", sql: sql)
    }

    private enum Compiled {
        case success(OpaquePointer)
        case empty
        case failure(Int32)

        func error(_ handle: Handle, sql: String) throws(StoreError) -> StoreError {
            guard case .failure(let code) = self else {
                return StoreError(.sql, "the text holds no statement", sql: sql)
            }
            return handle.error(code, sql: sql)
        }
    }

    /// The first statement of a text, and whether only space, comments and semicolons follow it. A
    /// text that does not compile is `.failure` with the engine's code, not an error.
    ///
    /// - Parameter authorized: Compiles under the authorizer's rules for this text.
    /// - Throws: As `Handle.compiling`.
    private static func compile(
        _ handle: Handle, _ bytes: UnsafeBufferPointer<UInt8>, persistent: Bool, isPragma: Bool,
        _ authorized: (() -> Int32) -> Int32
    ) throws(StoreError) -> (Compiled, Bool) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return (.empty, true) }
        guard bytes.count <= Int32.max else { return (.failure(SQLITE_TOOBIG), true) }
        let start = UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)
        var raw: OpaquePointer?
        var tail: UnsafePointer<CChar>?
        let prepare = persistent ? coffer_prepare_persistent : sqlite3_prepare_v2
        let code = try handle.compiling(&raw, isPragma: isPragma) { raw in
            authorized { prepare(handle.db, start, Int32(bytes.count), &raw, &tail) }
        }
        guard code == SQLITE_OK else { return (.failure(code), true) }
        guard let raw else { return (.empty, true) }
        let rest = UnsafeBufferPointer(rebasing: bytes[(tail.map { $0 - start } ?? bytes.count)...])
        do throws(StoreError) {
            return (.success(raw), try hasNoStatement(handle, rest))
        } catch {
            sqlite3_finalize(raw)
            throw error
        }
    }

    /// Whether the bytes hold only space, comments and semicolons, as the engine's own parser finds
    /// it. False for bytes with a NUL. Throws as `Handle.compiling`.
    private static func hasNoStatement(
        _ handle: Handle, _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(StoreError) -> Bool {
        if bytes.allSatisfy({ $0 == 0x20 || $0 == 0x0a || $0 == 0x3b }) { return true }
        guard let base = bytes.baseAddress, !bytes.contains(0) else { return false }
        let start = UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)
        var raw: OpaquePointer?
        defer { sqlite3_finalize(raw) }
        let code = try handle.compiling(&raw) { raw in
            handle.authorizer.whileValidating {
                sqlite3_prepare_v2(handle.db, start, Int32(bytes.count), &raw, nil)
            }
        }
        return code == SQLITE_OK && raw == nil
    }
}

extension String {
    /// VACUUM cannot run in a transaction, and the authorizer has no action code for it.
    var isVacuum: Bool { begins(with: "vacuum") }

    var isPragma: Bool { begins(with: "pragma") }

    /// Whether the text begins with a word of lower-case letters, in whatever case, after the space
    /// and the comments that SQLite passes over.
    ///
    /// - Complexity: O(*bytes up to the word*).
    private func begins(with word: StaticString) -> Bool {
        var text = self
        return text.withUTF8 { bytes in
            let rest = bytes.dropFirst(Self.lengthOfLeadingComments(bytes))
            return rest.count >= word.utf8CodeUnitCount
                && zip(
                    rest, UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
                )
                .allSatisfy { $0 | 0x20 == $1 }
        }
    }

    /// How many bytes at the beginning are space and comments.
    /// See <https://www.sqlite.org/lang_comment.html>.
    private static func lengthOfLeadingComments(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var start = 0
        while start < bytes.count {
            let rest = bytes[start...]
            switch rest[start] {
            case 0x20, 0x09...0x0d:
                start += 1
            case UInt8(ascii: "-") where rest.starts(with: "--".utf8):
                start = rest.firstIndex(of: 0x0a) ?? bytes.count
            case UInt8(ascii: "/") where rest.starts(with: "/*".utf8):
                var end = start + 3
                while end < bytes.count,
                    bytes[end - 1] != UInt8(ascii: "*") || bytes[end] != UInt8(ascii: "/")
                {
                    end += 1
                }
                start = Swift.min(end + 1, bytes.count)
            case 0xef where rest.starts(with: [0xef, 0xbb, 0xbf]):
                start += 3
            default:
                return start
            }
        }
        return start
    }
}
