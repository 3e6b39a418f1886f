/// A database file that is written under a temporary name in the same folder and gets its own name
/// when it is complete.
///
/// Nobody ever sees it empty or half-written, and a crash leaves no file that could be mistaken for
/// a store. Files of the temporary name are removed when this value ends. Files that a killed
/// process left are removed when the next value begins.
package struct NewFile: ~Copyable {
    /// The file's final location.
    let file: FileLocation
    /// The file's location while it is written.
    let temporary: FileLocation
    private let unfinished: UnfinishedFile
    /// Held until the file has its name or is gone.
    private let lock: MakerLock

    /// Takes a random temporary name and locks it; the file itself does not exist yet. Removes
    /// files of killed processes that would have become `file`.
    ///
    /// - Throws: `.damaged` if a non-empty WAL or journal exists next to `file`; as
    ///   `StoreError.notCreated`.
    init(at file: FileLocation) throws(StoreError) {
        try Self.requireNoPendingChanges(file)
        for left in UnfinishedFile.all(of: file) { left.removeIfLeft() }
        (unfinished, lock) = try Self.locked(file)
        self.file = file
        temporary = FileLocation(resolved: unfinished.path)
    }

    /// Takes a temporary name next to an existing file, for a copy that never gets another name.
    ///
    /// - Throws: As `StoreError.notCreated`.
    init(beside file: FileLocation) throws(StoreError) {
        (unfinished, lock) = try Self.locked(file)
        self.file = file
        temporary = FileLocation(resolved: unfinished.path)
    }

    /// As `init(at:)` of a `FileLocation`, for a path.
    ///
    /// - Throws: `.misuse`, `.unsupported` or `.notFound` for the path, as `FileLocation.init(_:)`;
    ///   otherwise as `init(at:)` of a `FileLocation`.
    package init(at path: String) throws(StoreError) {
        try self.init(at: FileLocation(path))
    }

    package var temporaryPath: String { temporary.path }

    private static func locked(
        _ file: FileLocation
    ) throws(StoreError) -> (UnfinishedFile, MakerLock) {
        while true {
            let unfinished = UnfinishedFile(for: file)
            if let lock = try MakerLock.making(unfinished.lockPath, for: file.path) {
                return (unfinished, lock)
            }
        }
    }

    /// Refuses a path with a non-empty WAL or journal, which SQLite would replay into the new file.
    ///
    /// - Throws: `.damaged` if there is one.
    static func requireNoPendingChanges(_ file: FileLocation) throws(StoreError) {
        guard !file.hasPendingChanges else {
            throw StoreError(
                .damaged, "\(file.path) is missing, but its WAL or journal exists",
                hint: "Restore the file next to its WAL, or move the WAL away if you do not need "
                    + "it.")
        }
    }

    deinit {
        unfinished.remove(holding: lock)
    }

    /// Gives the file its final name. The file must be closed and synced.
    ///
    /// - Returns: `false` if another file has that name: it stays, and the temporary file is
    ///   removed when this value ends.
    /// - Throws: `.io` if the file cannot be renamed.
    package borrowing func adopt() throws(StoreError) -> Bool {
        try file.adopt(temporary.path)
    }
}
