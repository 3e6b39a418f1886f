import CSQLCipher

/// An unfinished file next to a store, under the store's key, that never gets another name.
///
/// It is removed at the end of its lifetime. One that a killed process left is removed by the next
/// compaction, and `coffer doctor` lists it.
struct UnfinishedCopy: ~Copyable {
    private let new: NewFile
    let cipher: FileCipher
    private let configuration: Configuration
    private let cacheByteCount: Int

    private init(
        _ new: consuming NewFile, _ cipher: FileCipher, _ configuration: Configuration,
        cacheByteCount: Int
    ) {
        self.new = new
        self.cipher = cipher
        self.configuration = configuration
        self.cacheByteCount = cacheByteCount
    }

    /// Creates the file with its first page, and with the settings that a file accepts only while
    /// it is empty.
    ///
    /// - Parameter store: The store's connection.
    /// - Throws: `.io`, `.full`, `.tooManyFiles`.
    static func make(
        of store: Handle, _ file: StoreFile, _ configuration: Configuration, cacheByteCount: Int
    ) throws(StoreError) -> UnfinishedCopy {
        let settings = try DatabaseCopy.settings(of: store)
        let copy = UnfinishedCopy(
            try NewFile(beside: file.location), file.cipher, configuration,
            cacheByteCount: cacheByteCount)
        try copy.create(settings)
        return copy
    }

    private borrowing func create(_ settings: [String: String]) throws(StoreError) {
        try new.temporary.createPrivate()
        let handle = try Handle(
            path: new.temporary.path, flags: SQLITE_OPEN_READWRITE, vfs: configuration.vfs)
        defer { handle.close() }
        try physical().unlock(handle, key: cipher.key)
        try handle.run("PRAGMA encoding = \"\(settings["encoding"] ?? "UTF-8")\"")
        try handle.run("PRAGMA auto_vacuum = \(settings["auto_vacuum"] ?? "0")")
        try handle.run("PRAGMA user_version = 0")
    }

    /// Opens the file to check it and to copy its pages.
    borrowing func open() throws(StoreError) -> Handle {
        try physical().open(key: cipher.key)
    }

    /// Attaches the file to a connection that fills or checks it. Nothing is synced and nothing can
    /// be rolled back, because the file is removed after any failure.
    borrowing func attach(to handle: Handle, as schema: String) throws(StoreError) {
        try Attachment(name: schema, file: new.temporary, profile: cipher.profile)
            .attach(to: handle, key: cipher.key)
        try handle.run("PRAGMA \(schema).journal_mode = OFF")
        try handle.run("PRAGMA \(schema).synchronous = OFF")
        try handle.setCacheByteCount(cacheByteCount, schema: schema)
    }

    /// Reports the growth of the file, and ends the work if it is cancelled.
    ///
    /// - Parameter store: The connection that reads the store.
    borrowing func watch(
        _ monitor: CopyMonitor, of store: Handle
    ) throws(StoreError) -> () throws(StoreError) -> Void {
        let pageCount =
            try store.firstInteger("PRAGMA page_count")
            - store.firstInteger("PRAGMA freelist_count")
        let pageByteCount = cipher.profile.pageByteCount
        let file = new.temporary
        var toldCount = 0
        return { () throws(StoreError) in
            let count = min(file.companionByteCount("") / pageByteCount, pageCount)
            guard count - toldCount >= CopyMonitor.interval else {
                return try monitor.requireNotCancelled()
            }
            toldCount = count
            try monitor.report(.copyingPages, count, of: pageCount)
        }
    }

    private borrowing func physical() -> PhysicalOpen {
        PhysicalOpen(
            file: new.temporary, profile: cipher.profile, configuration: configuration,
            role: .source, cacheByteCount: cacheByteCount)
    }
}
