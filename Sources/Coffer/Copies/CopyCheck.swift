/// Checks a finished copy before it gets its name.
struct CopyCheck {
    let handle: Handle
    /// `nil` for a plaintext database, whose pages carry no MAC.
    let cipher: FileCipher?
    let monitor: CopyMonitor
    /// The connection and schema that check the structure; `nil` for `handle`. An index may need
    /// functions that only a prepared connection has.
    var structure: (handle: Handle, schema: String)?
    /// Whether to authenticate every page in a pass of its own. A caller that reads every page
    /// afterwards, before anything depends on it, saves that pass.
    var authenticatesAllPages = true

    struct Result {
        let tableCount: Int
        let rowCount: Int
        let pageCount: Int
    }

    /// - Parameter content: The source's content; `nil` if its pages were copied unchanged.
    /// - Throws: `.damaged`, `.cancelled`.
    func run(_ content: DatabaseCopy.Content?) throws(StoreError) -> Result {
        if authenticatesAllPages { try requireAuthenticPages() }
        try handle.run(.begin)
        defer { try? handle.run(.rollback) }
        if let structure {
            let pageCount = try handle.firstInteger("PRAGMA page_count")
            try monitor.report(.verifyingPages, 0, of: pageCount)
            try Self.requireSound(structure.handle, "the copy", schema: structure.schema)
            try monitor.report(.verifyingPages, pageCount, of: pageCount)
        } else {
            try Self.requireSound(handle, "the copy", isAuthentic: cipher != nil)
        }
        let schema = try CopiedSchema(of: handle, withColumns: content != nil)
        let rowCount: Int
        if let content {
            rowCount = try requireSame(schema, as: content)
        } else {
            var count = 0
            for table in schema.tables where !table.isInternal {
                count += try handle.firstInteger("SELECT count(*) FROM \(table.quotedName)")
            }
            rowCount = count
            try monitor.report(.verifyingRows, rowCount, of: rowCount)
        }
        if let failure = handle.probeFailure() { throw failure }
        return Result(
            tableCount: schema.tables.count { !$0.isInternal }, rowCount: rowCount,
            pageCount: try handle.firstInteger("PRAGMA page_count"))
    }

    /// Authenticates every page of the file, through the engine's own file descriptor.
    private func requireAuthenticPages() throws(StoreError) {
        guard let cipher else { return }
        let byteCount = cipher.profile.pageByteCount
        let pageCount = try handle.rawByteCount() / byteCount
        let lockPage = RawPages.lockPage(pageByteCount: byteCount)
        let sweep = PageSweep(handle, key: cipher.key, profile: cipher.profile)
        let failing = try sweep.failing(of: (1..<pageCount + 1).lazy.filter { $0 != lockPage }) {
            count throws(StoreError) in
            try monitor.report(.verifyingPages, count, of: pageCount)
        }
        if let number = failing.first {
            throw StoreError(
                .damaged, "page \(number) of the copy failed authentication; it was removed",
                hint: "The disk or the engine did not keep what was written.", pages: [number])
        }
        try monitor.report(.verifyingPages, pageCount, of: pageCount)
    }

    /// - Throws: `.damaged` with the first problem that `integrity_check` reports. Throws nothing
    ///   if all pages are authentic and the check cannot run, because the schema needs a collation
    ///   or a function that this program does not have.
    static func requireSound(
        _ handle: Handle, _ what: String, schema: String = "main", isAuthentic: Bool = false
    ) throws(StoreError) {
        var problems: [String] = []
        do throws(StoreError) {
            let rows = try CopyStatement(handle, "PRAGMA \(schema).integrity_check(10)")
            while try rows.step() {
                if let text = try rows.text(0), text != "ok" { problems.append(text) }
            }
        } catch  where isAuthentic && error.isInability && handle.probeFailure() == nil {
            return
        } catch  where error.code == .sql || error.code == .damaged {
            // On SQLCipher 4 the pragma itself fails.
            problems.append(error.message)
        }
        guard let first = problems.first else { return }
        throw StoreError(
            .damaged, "the structure of \(what) is not sound: \(first)",
            hint: "Run integrity_check on the source, and mend or restore it.")
    }

    private func requireSame(
        _ schema: CopiedSchema, as content: DatabaseCopy.Content
    ) throws(StoreError) -> Int {
        guard Set(schema.entries) == Set(content.schema.entries),
            schema.entries.count == content.schema.entries.count,
            try DatabaseCopy.settings(of: handle) == content.settings
        else { throw different("its schema") }
        let isUTF16 = content.settings["encoding"]?.hasPrefix("UTF-16") ?? false
        let countTotal = content.digests.reduce(0) { $0 + $1.rowCount }
        var count = 0
        var rowCount = 0
        for (table, expected) in zip(content.schema.tables, content.digests) {
            var digest = RowDigest(isUTF16: isUTF16)
            let select = try CopyStatement(handle, table.select)
            while try select.step() {
                digest.add(select)
                count += 1
                if count % CopyMonitor.interval == 0 {
                    try monitor.report(.verifyingRows, count, of: countTotal)
                }
            }
            guard digest == expected else { throw different("table \(table.name)") }
            if !table.isInternal { rowCount += digest.rowCount }
        }
        try monitor.report(.verifyingRows, count, of: countTotal)
        return rowCount
    }

    private func different(_ what: String) -> StoreError {
        StoreError(
            .damaged, "\(what) is different in the copy, which was removed",
            hint: "The source may hold values that its own columns would not keep; report this.")
    }
}
