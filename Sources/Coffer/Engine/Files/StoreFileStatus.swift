import CSQLCipher

/// What a file reveals without its key.
///
/// ```swift
/// let status = try StoreFileStatus(path: "notes.db")
/// if status.format == .plaintext { … }
/// ```
public struct StoreFileStatus: Sendable, Equatable {
    /// The format that the first bytes indicate.
    public enum Format: String, Sendable, Codable {
        /// Zero bytes: not a store, but possibly the remains of one.
        case empty
        /// Shorter than the smallest page, or a text.
        case notAStore
        /// The first bytes are all zeros or all ones: the content was never written, or is lost.
        /// That is damage, however much of the file is left, unless the WAL or journal next to it
        /// has the first page; only the key can show that.
        case blank
        /// A plaintext SQLite database.
        case plaintext
        /// An encrypted database of SQLCipher 4 whose header is plaintext
        /// (`cipher_plaintext_header_size`): Coffer does not open it.
        case plaintextHeader
        /// The keyring of a store, or a copy of one: not a store itself.
        case keyring
        /// Bytes that look random: a store, or noise. Only a key can distinguish them.
        case encrypted
    }

    /// The file's absolute path, with links resolved.
    public let path: String
    /// The format that the first bytes indicate.
    public let format: Format
    /// The public id of an encrypted file: its 16 salt bytes as 32 hex digits. A copy of the file
    /// has the same id. A keyring belongs to the file if its ``Keyring/storeID`` is this id. `nil`
    /// unless ``format`` is ``Format/encrypted``.
    public let storeID: String?
    /// Byte count of the main file.
    public let byteCount: Int
    /// Byte count of the WAL next to the file, 0 if there is none.
    public let walByteCount: Int
    /// Byte count of the rollback journal next to the file, 0 if there is none. A journal that no
    /// process is writing at the moment was left by a crash; opening the store plays it back.
    public let journalByteCount: Int
    /// The number of names (hard links) that the file has. Programs that open it under different
    /// names use different WALs, and lose each other's changes.
    public let nameCount: Int

    /// Free bytes for this user in the file system of the file; `nil` if it does not tell.
    package var freeByteCount: Int? { FileLocation(resolved: path).freeByteCount() }

    /// Examines a file without changing anything.
    ///
    /// - Parameter path: The file. It may be open in this process: Coffer reads it through SQLite,
    ///   because closing another descriptor of the file would drop SQLite's locks.
    /// - Throws: `StoreError` `.notFound` if there is no file, `.notAStore` for a folder or device,
    ///   `.io` if the file cannot be read; `.misuse` or `.unsupported` for a path that cannot be
    ///   that of a file, such as an empty one or `:memory:`.
    /// - Complexity: O(1); O(*names in the folder*) if the file has several names.
    public init(path: String) throws {
        try self.init(FileLocation(path))
    }

    init(_ file: FileLocation) throws(StoreError) {
        guard case .file(let byteCount, _) = try file.status() else {
            throw StoreError(.notFound, "there is no file at \(file.path)")
        }
        self.path = file.path
        self.byteCount = byteCount
        walByteCount = file.companionByteCount("-wal")
        journalByteCount = file.companionByteCount("-journal")
        nameCount = try file.nameCount()
        let start = try Self.start(of: file, byteCount: byteCount)
        format = byteCount == 0 ? .empty : start.map(Self.format) ?? .notAStore
        storeID =
            format == .encrypted
            ? start.map { Array($0.prefix(RawKey.saltByteCount)).hexDigits }
            : nil
    }

    /// The first bytes; `nil` for a file that is shorter.
    private static func start(
        of file: FileLocation, byteCount: Int
    ) throws(StoreError) -> [UInt8]? {
        guard byteCount >= FirstBytes.count else { return nil }
        let handle: Handle
        do throws(StoreError) {
            handle = try Handle(path: file.path, flags: SQLITE_OPEN_READONLY)
        } catch {
            try file.requireReadable()
            throw error
        }
        return try handle.rawBytes(at: 0, count: FirstBytes.count)
    }

    private static func format(_ start: [UInt8]) -> Format {
        if FirstBytes.hasPlaintextHeader(start) { return .plaintextHeader }
        if FirstBytes.isPlaintext(start) { return .plaintext }
        if start.starts(with: KeyringArea.magic) { return .keyring }
        if FirstBytes.isBlank(start) { return .blank }
        return FirstBytes.isText(start) ? .notAStore : .encrypted
    }
}
