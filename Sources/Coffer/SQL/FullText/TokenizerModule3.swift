import CSQLCipher

/// A module of FTS3 and FTS4 (`tokenize=coffer name`): the pointers that the engine calls.
final class TokenizerModule3 {
    let name: String
    /// Owns this module.
    private unowned let registry: TokenizerRegistry
    private let pointer: UnsafeMutablePointer<coffer_tokenizer_module>

    init(name: String, registry: TokenizerRegistry) {
        self.name = name
        self.registry = registry
        pointer = .allocate(capacity: 1)
        pointer.initialize(
            to: coffer_tokenizer_module(
                version: 0, create: createTokenizer, destroy: destroyTokenizer,
                open: openCursor, close: closeCursor, next: nextToken, language: nil,
                context: nil))
        // Unretained: the module owns and frees the memory that the engine points to.
        pointer.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        pointer.deallocate()
    }

    fileprivate static func of(_ tokenizer: coffer_tokenizer) -> TokenizerModule3? {
        tokenizer.module?.pointee.context.map {
            Unmanaged<TokenizerModule3>.fromOpaque($0).takeUnretainedValue()
        }
    }

    fileprivate func open(
        _ table: TokenizedTable, _ text: UnsafePointer<CChar>?, _ byteCount: Int32
    ) throws -> TokenRun {
        try registry.run(try table.name ?? name, text, byteCount: byteCount)
    }

    fileprivate func fail(_ error: any Error) -> Int32 { registry.fail(error) }

    /// The module's address in the form that FTS3 takes.
    fileprivate var address: [UInt8] {
        withUnsafeBytes(of: UnsafeRawPointer(pointer)) { Array($0) }
    }
}

extension Handle {
    /// Registers a module with FTS3 by calling `fts3_tokenizer`; its address is bound, not SQL
    /// text.
    ///
    /// - Returns: Whether FTS3 now knows the module: `false` if the engine has no such function.
    func announce(_ module: TokenizerModule3) throws(StoreError) -> Bool {
        _ = coffer_set_option(db, Int32(coffer_option_fts3_tokenizer), 1)
        var raw: OpaquePointer?
        defer { sqlite3_finalize(raw) }
        let sql = "SELECT fts3_tokenizer(?, ?)"
        let known = authorizer.asCoffer { sqlite3_prepare_v2(db, sql, -1, &raw, nil) }
        guard known & 0xff != SQLITE_ERROR else { return false }
        guard known == SQLITE_OK else { throw error(known, sql: sql) }
        sqlite3_bind_text(raw, 1, module.name, -1, coffer_transient())
        let address = module.address
        sqlite3_bind_blob(raw, 2, address, Int32(address.count), coffer_transient())
        let code = authorizer.asCoffer { sqlite3_step(raw) }
        guard code == SQLITE_ROW else { throw error(code, sql: sql) }
        return true
    }
}

/// The arguments that a table gives its tokenizer.
private final class TokenizedTable {
    private let arguments: [String]

    init(_ arguments: [String]) {
        self.arguments = arguments
    }

    /// The tokenizer's name; `nil` if the module's own name applies.
    var name: String? {
        get throws(StoreError) {
            guard arguments.count < 2 else {
                throw StoreError(
                    .sql, "a table names one tokenizer: tokenize=coffer name",
                    hint: "Put a name with spaces in double quotes.")
            }
            return arguments.first
        }
    }
}

/// One text that is being tokenized, and the memory of its last token.
private final class OpenText {
    let run: TokenRun
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 32, alignment: 1)

    init(_ run: TokenRun) {
        self.run = run
    }

    deinit {
        memory.deallocate()
    }

    /// Copies a text of any length; the copy is valid until the next call.
    func keep(_ text: String) -> UnsafeRawBufferPointer {
        var text = text
        return text.withUTF8 { bytes in
            if bytes.count > memory.count {
                memory.deallocate()
                memory = .allocate(byteCount: bytes.count * 2, alignment: 1)
            }
            memory.copyMemory(from: UnsafeRawBufferPointer(bytes))
            return UnsafeRawBufferPointer(rebasing: memory[..<bytes.count])
        }
    }
}

private func createTokenizer(
    count: Int32, arguments: UnsafePointer<UnsafePointer<CChar>?>?,
    result: UnsafeMutablePointer<UnsafeMutablePointer<coffer_tokenizer>?>?
) -> Int32 {
    let names = (0..<Int(count)).compactMap { arguments?[$0].map { String(cString: $0) } }
    let table = TokenizedTable(names)
    if let handle = SchemaChange.handle {
        do throws(StoreError) {
            if let name = try table.name {
                _ = try handle.tokenizers.find(name)
            } else {
                try handle.tokenizers.requireDefault()
            }
        } catch {
            return error.failStatement(of: handle)
        }
    }
    let tokenizer = UnsafeMutablePointer<coffer_tokenizer>.allocate(capacity: 1)
    tokenizer.initialize(
        to: coffer_tokenizer(
            module: nil, context: Unmanaged.passRetained(table).toOpaque()))
    result?.pointee = tokenizer
    return SQLITE_OK
}

private func destroyTokenizer(tokenizer: UnsafeMutablePointer<coffer_tokenizer>?) -> Int32 {
    if let context = tokenizer?.pointee.context {
        Unmanaged<TokenizedTable>.fromOpaque(context).release()
    }
    tokenizer?.deallocate()
    return SQLITE_OK
}

private func openCursor(
    tokenizer: UnsafeMutablePointer<coffer_tokenizer>?, text: UnsafePointer<CChar>?,
    byteCount: Int32,
    result: UnsafeMutablePointer<UnsafeMutablePointer<coffer_tokenizer_cursor>?>?
) -> Int32 {
    guard let tokenizer, let module = TokenizerModule3.of(tokenizer.pointee),
        let context = tokenizer.pointee.context
    else { return SQLITE_MISUSE }
    let table = Unmanaged<TokenizedTable>.fromOpaque(context).takeUnretainedValue()
    do {
        // "If this argument is negative, the text is terminated by a NUL".
        let count = byteCount < 0 ? Int32(clamping: text.map { coffer_length($0) } ?? 0) : byteCount
        let open = OpenText(try module.open(table, text, count))
        let cursor = UnsafeMutablePointer<coffer_tokenizer_cursor>.allocate(capacity: 1)
        cursor.initialize(
            to: coffer_tokenizer_cursor(
                tokenizer: tokenizer, context: Unmanaged.passRetained(open).toOpaque()))
        result?.pointee = cursor
        return SQLITE_OK
    } catch {
        return module.fail(error)
    }
}

private func closeCursor(cursor: UnsafeMutablePointer<coffer_tokenizer_cursor>?) -> Int32 {
    if let context = cursor?.pointee.context {
        Unmanaged<OpenText>.fromOpaque(context).release()
    }
    cursor?.deallocate()
    return SQLITE_OK
}

private func nextToken(
    cursor: UnsafeMutablePointer<coffer_tokenizer_cursor>?,
    token: UnsafeMutablePointer<UnsafePointer<CChar>?>?, byteCount: UnsafeMutablePointer<Int32>?,
    start: UnsafeMutablePointer<Int32>?, end: UnsafeMutablePointer<Int32>?,
    position: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let context = cursor?.pointee.context else { return SQLITE_MISUSE }
    let open = Unmanaged<OpenText>.fromOpaque(context).takeUnretainedValue()
    do throws(StoreError) {
        guard let next = try open.run.next() else { return SQLITE_DONE }
        let bytes = open.keep(next.text)
        token?.pointee = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
        byteCount?.pointee = Int32(clamping: bytes.count)
        start?.pointee = Int32(next.range.lowerBound)
        end?.pointee = Int32(next.range.upperBound)
        position?.pointee = open.run.position
        return SQLITE_OK
    } catch {
        return open.run.fail(error)
    }
}
