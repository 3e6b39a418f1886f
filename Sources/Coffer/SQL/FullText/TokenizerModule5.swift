import CSQLCipher

/// A tokenizer of FTS5 (`tokenize='name'`), which SQLCipher 4 has.
enum TokenizerModule5 {
    /// - Returns: Whether the engine has FTS5.
    static func register(
        _ name: String, registry: TokenizerRegistry, on handle: Handle
    ) throws(StoreError) -> Bool {
        let entry = Unmanaged.passRetained(Entry(name, registry))
        let code = handle.authorizer.asCoffer {
            coffer_fts5_create_tokenizer(
                handle.db, name, entry.toOpaque(), create, release, tokenize, release)
        }
        guard code != SQLITE_OK else { return true }
        entry.release()
        guard code == SQLITE_NOTFOUND else { throw handle.error(code) }
        return false
    }
}

/// The context that the engine points to: retained once for the name, and again for each table.
private final class Entry {
    let name: String
    private weak var registry: TokenizerRegistry?

    init(_ name: String, _ registry: TokenizerRegistry) {
        self.name = name
        self.registry = registry
    }

    /// Splits a text and passes each token to `give`: its bytes, and its range of bytes in the
    /// text.
    ///
    /// - Returns: The first code of `give` that is not `SQLITE_OK`, and no token follows; the code
    ///   of a tokenizer's error; otherwise `SQLITE_OK`. `SQLITE_ERROR` once the connection is gone.
    func tokenize(
        _ text: UnsafePointer<CChar>?, _ byteCount: Int32,
        _ give: (UnsafeRawBufferPointer, Range<Int>) -> Int32
    ) -> Int32 {
        guard let registry else { return SQLITE_ERROR }
        do {
            let run = try registry.run(name, text, byteCount: byteCount)
            while var token = try run.next() {
                let code = token.text.withUTF8 { give(UnsafeRawBufferPointer($0), token.range) }
                guard code == SQLITE_OK else { return code }
            }
            return SQLITE_OK
        } catch {
            return registry.fail(error)
        }
    }

    func refuseArguments() -> Int32 {
        registry?.fail(
            StoreError(.sql, "the tokenizer \"\(name)\" takes no arguments")) ?? SQLITE_ERROR
    }
}

private func create(
    context: UnsafeMutableRawPointer?,
    arguments: UnsafeMutablePointer<UnsafePointer<CChar>?>?, count: Int32,
    result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> Int32 {
    guard let context else { return SQLITE_MISUSE }
    let entry = Unmanaged<Entry>.fromOpaque(context)
    guard count == 0 else { return entry.takeUnretainedValue().refuseArguments() }
    result?.pointee = entry.retain().toOpaque()
    return SQLITE_OK
}

private func release(context: UnsafeMutableRawPointer?) {
    context.map { Unmanaged<Entry>.fromOpaque($0).release() }
}

private func tokenize(
    tokenizer: UnsafeMutableRawPointer?, context: UnsafeMutableRawPointer?, flags: Int32,
    text: UnsafePointer<CChar>?, byteCount: Int32, give: coffer_fts5_token?
) -> Int32 {
    guard let tokenizer, let give else { return SQLITE_MISUSE }
    let entry = Unmanaged<Entry>.fromOpaque(tokenizer).takeUnretainedValue()
    return entry.tokenize(text, byteCount) { bytes, range in
        give(
            context, 0, bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
            Int32(clamping: bytes.count), Int32(range.lowerBound), Int32(range.upperBound))
    }
}
