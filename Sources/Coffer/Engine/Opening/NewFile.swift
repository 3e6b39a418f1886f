/// A database file that is written under another name in the same folder and gets its own name
/// when it is whole.
///
/// Nobody ever sees it empty or half-written, and a crash leaves no file to be taken for one. What
/// is left of the other name goes when this value ends, and what a killed process has left of it
/// when the next one begins.
package struct NewFile: ~Copyable {
    /// Where the file will stand.
    let file: FileLocation
    /// Where it is written.
    let temporary: FileLocation
    private let unfinished: UnfinishedFile
    /// Held until the file has its name or is gone.
    private let lock: MakerLock

    /// - Throws: `.damaged` if a log or journal without its file stands at the path; `.io`.
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
                .damaged, "\(file.path) is missing, but its log or journal is there",
                hint: "Restore the file beside its log, or move the log away if it is of no use.")
        }
    }

    deinit {
        unfinished.remove(holding: lock)
    }

    /// Gives the file its name, only if nothing has it: `false` if something does. The file was
    /// closed and is durable.
    package borrowing func adopt() throws(StoreError) -> Bool {
        try file.adopt(temporary.path)
    }
}
