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

    /// - Throws: `.damaged` if a WAL or journal without its file exists at the path; `.io`.
    init(at file: FileLocation) throws(StoreError) {
        try Self.requireNoPendingChanges(file)
        for left in UnfinishedFile.all(of: file) { left.removeIfLeft() }
        (unfinished, lock) = try Self.locked(file)
        self.file = file
        temporary = FileLocation(resolved: unfinished.path)
    }

    /// - Throws: As opening; `.io`.
    package init(at path: String) throws(StoreError) {
        try self.init(at: FileLocation(path))
    }

    package var temporaryPath: String { temporary.path }

    private static func locked(
        _ file: FileLocation
    ) throws(StoreError) -> (UnfinishedFile, MakerLock) {
        while true {
            let unfinished = UnfinishedFile(for: file)
            if let lock = try MakerLock.making(unfinished.lockPath) { return (unfinished, lock) }
        }
    }

    /// SQLite would replay them into the new file.
    private static func requireNoPendingChanges(_ file: FileLocation) throws(StoreError) {
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

    /// Gives the file its name if that is free; returns `false` if it is taken. The file must be
    /// closed and durable.
    package borrowing func adopt() throws(StoreError) -> Bool {
        try file.adopt(temporary.path)
    }
}
