import CSQLCipher

/// What can be said of a file without its key.
///
/// ```swift
/// let status = try StoreFileStatus(path: "notes.db")
/// if status.format == .plaintext { … }
/// ```
public struct StoreFileStatus: Sendable, Equatable {
    /// What the first bytes look like.
    public enum Format: String, Sendable, Codable {
        /// No byte at all: never a store, but what is left of one.
        case empty
        /// Shorter than any page, or a text.
        case notAStore
        /// Zeros alone, or ones alone: what was there was never written, or is lost. That is
        /// damage, however much of the file is left, unless the log or journal beside it has the
        /// first page: only the key tells.
        case blank
        /// A plaintext SQLite database.
        case plaintext
        /// An encrypted database of SQLCipher 4 whose header is in the clear
        /// (`cipher_plaintext_header_size`): Coffer does not open it.
        case plaintextHeader
        /// Bytes that look random: a store, or noise. Only a key tells.
        case encrypted
    }

    /// The file's absolute path, with links resolved.
    public let path: String
    /// What the first bytes look like.
    public let format: Format
    /// Bytes of the main file.
    public let byteCount: Int
    /// Bytes of the write-ahead log beside it, 0 if there is none.
    public let logByteCount: Int
    /// Bytes of the rollback journal beside it, 0 if there is none. One that no process is
    /// writing at the moment is what a crash left; opening the store plays it back.
    public let journalByteCount: Int
    /// How many names (hard links) the file has. Programs that open it under different names have
    /// different logs, and lose each other's changes.
    public let nameCount: Int

    /// Looks at a file without changing anything.
    ///
    /// - Parameter path: The file. It may be open in this process: it is read through SQLite,
    ///   whose locks a descriptor of our own would drop when it is closed.
    /// - Throws: `StoreError` `.notFound`, `.notAStore` for a folder or device, `.io`.
    /// - Complexity: O(1).
    public init(path: String) throws {
        try self.init(FileLocation(path))
    }

    init(_ file: FileLocation) throws(StoreError) {
        guard case .file(let byteCount, _) = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        self.path = file.path
        self.byteCount = byteCount
        logByteCount = file.companionByteCount("-wal")
        journalByteCount = file.companionByteCount("-journal")
        nameCount = try file.nameCount()
        format = try Self.format(of: file, byteCount: byteCount)
    }

    private static func format(
        of file: FileLocation, byteCount: Int
    ) throws(StoreError) -> Format {
        guard byteCount > 0 else { return .empty }
        guard byteCount >= FirstBytes.count else { return .notAStore }
        let handle: Handle
        do throws(StoreError) {
            handle = try Handle(path: file.path, flags: SQLITE_OPEN_READONLY)
        } catch {
            try file.requireReadable()
            throw error
        }
        guard let start = try handle.rawBytes(at: 0, count: FirstBytes.count) else {
            return .notAStore
        }
        if FirstBytes.hasPlaintextHeader(start) { return .plaintextHeader }
        if FirstBytes.isPlaintext(start) { return .plaintext }
        if FirstBytes.isBlank(start) { return .blank }
        return FirstBytes.isText(start) ? .notAStore : .encrypted
    }
}
