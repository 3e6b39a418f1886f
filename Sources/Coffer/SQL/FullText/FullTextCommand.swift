import CSQLCipher

/// A command that a full-text table runs on its own index.
///
/// See <https://www.sqlite.org/fts3.html#commands> and
/// <https://www.sqlite.org/fts5.html#special_insert_commands>.
public enum FullTextCommand: Sendable, Hashable {
    /// Merges the whole index into one segment: faster to search, and smaller.
    case optimize
    /// Rebuilds the index from the texts, as after a change of the tokenizer.
    case rebuild
    /// Compares the index with the texts; `.damaged` if they differ.
    case integrityCheck
    /// Merges a part of the index, to optimize it step by step: about `pages` pages at once, where
    /// a level has at least `segments` segments (2 to 16). FTS5 uses `pages` only.
    case merge(pages: Int, segments: Int = 8)
    /// Merges with each write, where a level has at least so many segments (2 to 16). 0 switches it
    /// off, 1 is the engine's own choice.
    case automerge(Int)
}

extension Connection {
    /// Runs a command of a full-text table.
    ///
    /// ```swift
    /// try connection.fullText(.optimize, on: "mail")
    /// ```
    ///
    /// - Parameters:
    ///   - command: What to do.
    ///   - table: A table of FTS3, FTS4 or FTS5.
    ///   - schema: `main`, `temp` or the name of an attached file; `nil` for the first that has
    ///     such a table.
    /// - Throws: `StoreError` `.notFound` if there is no such table; `.misuse` if it is not a
    ///   full-text table, or a number is out of range; `.damaged` if `integrityCheck` finds that
    ///   index and texts differ; `.sql` for a command that the table does not know, such as
    ///   `rebuild` of one that keeps no texts; otherwise as `execute(_:)`.
    /// - Complexity: O(*index*), and for `rebuild` and `integrityCheck` O(*texts*).
    public func fullText(
        _ command: FullTextCommand, on table: String, in schema: String? = nil
    ) throws {
        let (place, isFTS5) = try fullTextTable(table, schema)
        let name = try table.quotedIdentifier()
        let (text, number) = try command.words(isFTS5: isFTS5)
        var sql = SQL(text: "INSERT INTO \(try place.quotedIdentifier()).\(name)(\(name)")
        if let number {
            sql.append(", rank) VALUES (\(text), \(number))")
        } else {
            sql.append(") VALUES (\(text))")
        }
        do {
            try execute(sql)
        } catch let error as StoreError
            where error.resultCode == coffer_corrupt_virtual_table && error.pages.isEmpty
        {
            throw StoreError(
                .damaged, "the index of the full-text table does not match its texts",
                hint: "Rebuild the index with fullText(.rebuild, on:).", table: table,
                resultCode: error.resultCode)
        }
    }

    /// The schema and kind of the table; its shadow tables show the kind.
    private func fullTextTable(
        _ table: String, _ schema: String?
    ) throws -> (place: String, isFTS5: Bool) {
        guard let place = try place(ofTable: table, schema) else {
            throw StoreError(.notFound, "there is no such table", table: table)
        }
        // Any other table could have a column of its own name, and the command would become a row.
        // Only virtual tables have no root page; `type` excludes views.
        let isVirtual =
            try firstRow(
                """
                SELECT 1 FROM \(SQL(text: place.master)) WHERE type = 'table' \
                AND coalesce(rootpage, 0) = 0 AND name = \(table) COLLATE NOCASE
                """) != nil
        if isVirtual {
            if try has(table + "_segdir", place) { return (place.name, false) }
            if try has(table + "_idx", place), try has(table + "_config", place) {
                return (place.name, true)
            }
        }
        throw StoreError(.misuse, "the table is not a full-text table", table: table)
    }

    private func has(_ name: String, _ place: Place) throws -> Bool {
        try firstRow(
            """
            SELECT 1 FROM \(SQL(text: place.master)) WHERE type = 'table' \
            AND name = \(name) COLLATE NOCASE
            """) != nil
    }
}

extension FullTextCommand {
    /// The command in the table's syntax; for FTS5 its number is separate.
    fileprivate func words(isFTS5: Bool) throws(StoreError) -> (String, Int?) {
        switch self {
        case .optimize: return ("optimize", nil)
        case .rebuild: return ("rebuild", nil)
        case .integrityCheck: return ("integrity-check", nil)
        case .merge(let pages, let segments):
            guard 1...Int(Int32.max) ~= pages, 2...16 ~= segments else {
                throw StoreError(
                    .misuse,
                    "a merge takes at least 1 page and 2 to 16 segments, "
                        + "not \(pages) and \(segments)")
            }
            return isFTS5 ? ("merge", pages) : ("merge=\(pages),\(segments)", nil)
        case .automerge(let segments):
            guard 0...16 ~= segments else {
                throw StoreError(.misuse, "automerge takes 0 to 16 segments, not \(segments)")
            }
            // FTS5 takes 1 for "always", and its own choice is 4.
            guard isFTS5 else { return ("automerge=\(segments)", nil) }
            return ("automerge", segments == 1 ? 4 : segments)
        }
    }
}
