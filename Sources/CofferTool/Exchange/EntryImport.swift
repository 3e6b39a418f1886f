import Coffer
import Foundation

/// Fills a bucket from JSON lines, as `EntryExport` writes them.
struct EntryImport {
    /// What becomes of an entry whose key is in the bucket already.
    enum Existing {
        case refused, replaced, kept
    }

    let run: ImportRun
    let bucket: StoredBucket
    let existing: Existing
    /// The type of the keys; `nil` if the bucket must exist.
    let keyType: BucketKeyType?
    let codec: String?

    /// Must be called in a transaction.
    func callAsFunction() throws -> EntryImportResult {
        let isMade = try prepare()
        var writer = try EntryWriting(bucket, run.connection)
        try writer.form.requireOwnValues(bucket.name)
        var result = EntryImportResult(
            path: ReportedPath(run.path), bucket: bucket.name, isBucketMade: isMade)
        var line = 0
        do {
            try fill(&line, &writer, &result)
        } catch {
            throw run.failure(error, line: line)
        }
        return result
    }

    /// Makes the bucket if it does not exist, or compares its types.
    ///
    /// - Returns: Whether it was made.
    private func prepare() throws -> Bool {
        guard let types = try run.connection.bucketTypes(of: bucket.name) else {
            guard let keyType else {
                throw ToolError(
                    .notFound, "there is no bucket \(bucket.name)",
                    hint: "Make it with --key-type, the type of its keys.")
            }
            try run.connection.makeBucket(bucket.name, keyType: keyType, codec: codec ?? "sql")
            return true
        }
        if let keyType, let found = types.keyType, found != keyType {
            throw ToolError(
                .badInput, "the keys of \(bucket.name) are \(found), not \(keyType)",
                hint: "Leave --key-type out: the bucket exists.")
        }
        if let codec, let found = types.codec, found != codec {
            throw ToolError(
                .badInput, "the values of \(bucket.name) are stored as \(found), not as \(codec)",
                hint: "Leave --codec out: the bucket exists.")
        }
        return false
    }

    private func fill(
        _ line: inout Int, _ writer: inout EntryWriting, _ result: inout EntryImportResult
    ) throws {
        let lines = JSONLines(run.input)
        let now = BucketForm.now
        var number = 0
        while let bytes = try lines.next() {
            line += 1
            if bytes.allSatisfy(JSONRecord.isSpace) { continue }
            number += 1
            let place = Place(line: line, number: number, now: now)
            try store(entry(of: bytes, line), place, &writer, &result)
            try run.passed(line)
        }
    }

    private func entry(
        of bytes: UnsafeMutableBufferPointer<UInt8>, _ line: Int
    ) throws -> JSONEntry {
        do throws(JSONProblem) {
            return try JSONEntry(bytes)
        } catch {
            throw RecordProblem(line: line, message: error.message, hint: error.hint)
        }
    }

    /// Where an entry is in the input, and when.
    private struct Place {
        let line: Int
        /// Counts the entries from 1, without blank lines.
        let number: Int
        let now: Int64
    }

    private func store(
        _ entry: JSONEntry, _ place: Place, _ writer: inout EntryWriting,
        _ result: inout EntryImportResult
    ) throws {
        guard let key = writer.form.stored(entry.key) else {
            throw RecordProblem(
                line: place.line,
                message: "the key is not of the bucket's type: \(writer.form.keyType)")
        }
        try requireFitting(entry.value, writer.form, place.line)
        if let end = entry.end, end <= place.now {
            result.expiredCount += 1
            return
        }
        let found = try writer.find(key, now: place.now)
        if found == .live {
            switch existing {
            case .refused: throw taken(place)
            case .kept:
                result.keptCount += 1
                return
            case .replaced: result.replacedCount += 1
            }
        }
        guard try writer.write(entry, key, over: found) else {
            throw ToolError(
                .constraint,
                "\(run.input.name), line \(place.line): a trigger of the bucket refuses the entry")
        }
        result.entryCount += 1
    }

    private func taken(_ place: Place) -> ToolError {
        ToolError(
            .alreadyExists,
            "\(run.input.name), line \(place.line): the key of entry \(place.number) is in the "
                + "bucket already, or on an earlier line",
            hint: "--replace overwrites such entries, and --keep leaves them as they are.")
    }

    private func requireFitting(_ value: BorrowedValue, _ form: BucketForm, _ line: Int) throws {
        guard form.hasCodec else { return }
        do {
            try form.requireFitting(Value(copying: value), bucket.name)
        } catch let error as ToolError {
            // Its hint is for an argument.
            throw RecordProblem(line: line, message: error.message)
        }
    }
}

/// The statements of an import into one bucket.
struct EntryWriting {
    /// What the bucket has under a key.
    enum Found {
        case nothing, live
        /// Nothing for programs, but its row is still there.
        case expired
    }

    private(set) var form: BucketForm
    private let bucket: StoredBucket
    private let connection: Connection
    private var selection: Statement
    private var insertion: Statement
    private var update: Statement

    init(_ bucket: StoredBucket, _ connection: Connection) throws {
        let form = try bucket.requireForm { try connection.rows($0) }
        let table = SQL("\(identifier: bucket.table)").text
        let isLive = form.hasExpiry ? "expires IS NULL OR expires > ?2" : "?2 NOTNULL"
        let (columns, values, more) =
            form.hasExpiry ? (", expires", ", ?3", ", expires = ?3") : ("", "", "")
        (self.bucket, self.connection, self.form) = (bucket, connection, form)
        selection = try connection.prepare("SELECT \(isLive) FROM \(table) WHERE key = ?1")
        insertion = try connection.prepare(
            "INSERT INTO \(table)(key, value\(columns)) VALUES (?1, ?2\(values))")
        // Not by REPLACE, which removes other entries that are equal in a unique index.
        update = try connection.prepare("UPDATE \(table) SET value = ?2\(more) WHERE key = ?1")
    }

    func find(_ key: Value, now: Int64) throws -> Found {
        try selection.bind([key, .integer(now)])
        var found = Found.nothing
        while try selection.step() {
            found = try selection.value(at: 0) == .integer(1) ? .live : .expired
        }
        return found
    }

    /// Stores an entry in place of what was found.
    ///
    /// - Returns: Whether it is stored: a trigger may refuse it.
    mutating func write(_ entry: JSONEntry, _ key: Value, over found: Found) throws -> Bool {
        if entry.end != nil, !form.hasExpiry {
            try bucket.addExpiry { try connection.execute($0) }
            self = try EntryWriting(bucket, connection)
        }
        let statement = found == .nothing ? insertion : update
        try statement.bind(key, at: 0)
        try statement.bind(borrowing: entry.value, at: 1)
        if form.hasExpiry { try statement.bind(entry.end, at: 2) }
        _ = try statement.step()
        return connection.lastChangeCount > 0
    }
}

/// The result of an import into a bucket.
struct EntryImportResult: Report {
    let path: ReportedPath
    let bucket: String
    let isBucketMade: Bool
    /// The entries that were stored.
    var entryCount = 0
    /// Those of them that replaced an entry.
    var replacedCount = 0
    /// The entries of the bucket that stayed as they were.
    var keptCount = 0
    /// The entries that had expired, and were left out.
    var expiredCount = 0

    var lines: [(label: String, value: String)] {
        var lines = [
            ("store", "\(path)"), ("bucket", isBucketMade ? "\(bucket), made" : bucket),
            ("imported", Self.counted(entryCount)),
        ]
        if replacedCount > 0 { lines.append(("replaced", Self.counted(replacedCount))) }
        if keptCount > 0 { lines.append(("kept", Self.counted(keptCount))) }
        if expiredCount > 0 {
            lines.append(("left out", Self.counted(expiredCount) + ", expired"))
        }
        return lines
    }

    static func counted(_ count: Int) -> String { count == 1 ? "1 entry" : "\(count) entries" }
}
