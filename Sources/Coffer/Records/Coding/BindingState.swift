import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state for binding one row, in its own allocation so that access counts no references.
struct BindingState {
    /// The statement being bound; `nil` between records, where SQLite refuses to bind.
    var statement: OpaquePointer?
    /// One bit for each column that has a value; meaningless for a plan with more than 64 columns.
    var bound: UInt64 = 0
    /// Whether `RowEncoder` has recorded a failure to throw once the type has finished.
    var isRefused = false
    /// Whether the record encodes a column piece by piece.
    var hasTrees = false
    /// The columns whose dates count from 2001, of the first 64; the encoder has all.
    var since2001: UInt64 = 0
    /// Whether the file stores texts as UTF-16, to which SQLite converts some texts with loss.
    var isUTF16 = false
    var owner: Unmanaged<RowEncoder>?
    /// The first key type that was asked for, nearly always the only one. `holder` points to its
    /// `ContainerHolder`.
    var keyType: ObjectIdentifier?
    var holder: UnsafeRawPointer?

    /// Holds the texts and blobs of one row, so that the engine need not copy them.
    private let arena = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.arenaByteCount)
    private var arenaUsed = 0

    /// Bytes for one row. SQLite copies texts and blobs that do not fit.
    private static let arenaByteCount = 16_384

    func free() {
        arena.deallocate()
    }

    @inline(__always)
    mutating func begin(_ statement: OpaquePointer) {
        self.statement = statement
        bound = 0
        isRefused = false
        hasTrees = false
        arenaUsed = 0
    }

    // MARK: Binding. An entry is a column's position and its storage in one number.

    @inline(__always)
    private mutating func column(_ entry: Int32, _ storage: Storage) throws -> Int32 {
        guard entry & 3 == storage.rawValue else { throw wrongStorage(entry, storage) }
        let column = entry >> 2
        // `RowEncoder` ignores the bits of a plan with more than 64 columns.
        bound |= 1 &<< UInt64(truncatingIfNeeded: column)
        return column &+ 1
    }

    @inline(__always)
    mutating func bind(_ value: Int64, _ entry: Int32) throws {
        let code = sqlite3_bind_int64(statement, try column(entry, .integer), value)
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    @inline(__always)
    mutating func bind(_ value: Double, _ entry: Int32) throws {
        guard !value.isNaN else { throw notANumber(entry) }
        let code = sqlite3_bind_double(statement, try column(entry, .real), value)
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    @inline(__always)
    mutating func bind(_ value: Date, _ entry: Int32) throws {
        try bind(
            countsFrom2001(entry >> 2)
                ? value.timeIntervalSinceReferenceDate : value.timeIntervalSince1970, entry)
    }

    /// Whether the dates of a column count from 2001 rather than 1970.
    @inline(__always)
    func countsFrom2001(_ column: Int32) -> Bool {
        column < 64
            ? since2001 &>> UInt64(truncatingIfNeeded: column) & 1 != 0
            : encoder.since2001.contains(column)
    }

    /// Copies the bytes before calling SQLite, so that the text need not be kept alive.
    @inline(__always)
    mutating func bind(_ value: String, _ entry: Int32) throws {
        let column = try column(entry, .text)
        if isUTF16 { return try bindTransient(value, column, entry) }
        let copy = value.utf8.withContiguousStorageIfAvailable { bytes in
            (start: keep(UnsafeRawBufferPointer(bytes)), count: bytes.count)
        }
        guard let copy, let start = copy.start else {
            return try bindTransient(value, column, entry)
        }
        // A `nil` destructor is SQLITE_STATIC: the arena stays unchanged until the statement has
        // run.
        let code = sqlite3_bind_text(
            statement, column, UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self),
            Int32(truncatingIfNeeded: copy.count), nil)
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    /// Binds a text that is too long for the arena, that Swift does not store as UTF-8 (such as a
    /// bridged Objective-C string), or that goes into a UTF-16 file.
    @inline(never)
    private mutating func bindTransient(
        _ value: String, _ column: Int32, _ entry: Int32
    ) throws {
        var value = value
        let code = try value.withUTF8 { bytes in
            try requireKept(UnsafeRawBufferPointer(bytes), entry)
            return bindText(UnsafeRawBufferPointer(bytes), column)
        }
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    /// Refuses U+FFFE and U+FFFF, which SQLite changes to U+FFFD in UTF-16: see READ_UTF8 in its
    /// `utf.c`.
    private func requireKept(_ bytes: UnsafeRawBufferPointer, _ entry: Int32) throws {
        guard isUTF16 else { return }
        for start in bytes.indices.dropLast(2)
        where bytes[start] == 0xef && bytes[start + 1] == 0xbf && bytes[start + 2] >= 0xbe {
            throw encoder.failure(
                StoreError(
                    .mismatch,
                    "the file stores texts as UTF-16, in which SQLite changes U+FFFE and U+FFFF",
                    hint: "Store such a text as Data, or copy the rows into a file of UTF-8."),
                entry >> 2)
        }
    }

    /// Refuses a value that SQLite would change: NaN, and what `requireKept` of a text refuses.
    func requireKept(_ value: Value, _ entry: Int32) throws {
        switch value {
        case .real(let real):
            if real.isNaN { throw notANumber(entry) }
        case .text(var text):
            try text.withUTF8 { try requireKept(UnsafeRawBufferPointer($0), entry) }
        default: break
        }
    }

    /// Binds UTF-8 bytes as a text.
    @inline(never)
    mutating func bindText(_ value: Data, _ entry: Int32) throws {
        let column = try column(entry, .text)
        let code = try value.withUnsafeBytes { bytes in
            try requireKept(bytes, entry)
            return bindText(bytes, column)
        }
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    @inline(never)
    mutating func bind(_ value: Data, _ entry: Int32) throws {
        let column = try column(entry, .blob)
        let code = value.withUnsafeBytes { bytes in bindBlob(bytes, column) }
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    mutating func bindBlob(_ bytes: UnsafeRawBufferPointer, entry: Int32) throws {
        let code = bindBlob(bytes, try column(entry, .blob))
        guard code == SQLITE_OK else { throw failure(code, entry) }
    }

    mutating func bindNull(_ entry: Int32) throws {
        let code = sqlite3_bind_null(statement, (entry >> 2) + 1)
        guard code == SQLITE_OK else { throw failure(code, entry) }
        // The bit stays as it is, because a column without a value becomes NULL too.
    }

    mutating func bind(_ value: Value, _ entry: Int32) throws {
        switch value {
        case .null: try bindNull(entry)
        case .integer(let integer): try bind(integer, entry)
        case .real(let real): try bind(real, entry)
        case .text(let text): try bind(text, entry)
        case .blob(let data): try bind(data, entry)
        }
    }

    @inline(__always)
    private mutating func bindText(_ bytes: UnsafeRawBufferPointer, _ column: Int32) -> Int32 {
        guard let copy = keep(bytes) else {
            return sqlite3_bind_text64(
                statement, column, bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
                UInt64(bytes.count), coffer_transient(), UInt8(SQLITE_UTF8))
        }
        // A `nil` destructor is SQLITE_STATIC: the arena stays unchanged until the statement has
        // run.
        return sqlite3_bind_text(
            statement, column, UnsafeRawPointer(copy).assumingMemoryBound(to: CChar.self),
            Int32(truncatingIfNeeded: bytes.count), nil)
    }

    @inline(__always)
    private mutating func bindBlob(_ bytes: UnsafeRawBufferPointer, _ column: Int32) -> Int32 {
        guard let copy = keep(bytes) else {
            return sqlite3_bind_blob64(
                statement, column, bytes.baseAddress, UInt64(bytes.count), coffer_transient())
        }
        return sqlite3_bind_blob(
            statement, column, copy, Int32(truncatingIfNeeded: bytes.count), nil)
    }

    /// Copies into the arena; `nil` if there is no room. Empty bytes get an address too, because
    /// SQLite binds a null pointer as NULL.
    @inline(__always)
    private mutating func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
        // Neither side can overflow: both are at most `arenaByteCount`.
        guard bytes.count <= Self.arenaByteCount &- arenaUsed else { return nil }
        let copy = arena + arenaUsed
        if let start = bytes.baseAddress {
            UnsafeMutableRawPointer(copy).copyMemory(from: start, byteCount: bytes.count)
        }
        arenaUsed &+= bytes.count
        return copy
    }

    // MARK: Failures

    @inline(never)
    private func wrongStorage(_ entry: Int32, _ found: Storage) -> any Error {
        encoder.wrongStorage(entry, found)
    }

    @inline(never)
    private func notANumber(_ entry: Int32) -> any Error {
        encoder.failure(
            StoreError(.mismatch, "NaN cannot be stored: SQLite makes it NULL"), entry >> 2)
    }

    @inline(never)
    private func failure(_ code: Int32, _ entry: Int32) -> any Error {
        encoder.failure(StoreError.of(nil, code: code, sql: nil), entry >> 2)
    }

    /// Safe: the encoder owns this memory, so it is alive, and it sets `owner` in its initialiser.
    var encoder: RowEncoder { owner.unsafelyUnwrapped.takeUnretainedValue() }
}
