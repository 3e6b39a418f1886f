/// A database file that is written under another name in the same folder and gets its own name
/// when it is whole.
///
/// Nobody ever sees it empty or half-written, and a crash leaves no file to be taken for one. What
/// is left of the other name goes when this value ends.
struct NewFile: ~Copyable {
    /// Where the file will stand.
    let file: FileLocation
    /// Where it is written.
    let temporary: FileLocation

    /// - Throws: `.damaged` if a log or journal without its file stands at the path.
    init(at file: FileLocation) throws(StoreError) {
        try Self.requireNoPendingChanges(file)
        let suffix = KeyDerivation.randomSalt().prefix(6).map { String($0, radix: 36) }.joined()
        let temporary = try FileLocation("\(file.path).new-\(suffix)")
        self.file = file
        self.temporary = temporary
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
        for suffix in ["", "-wal", "-shm", "-journal"] { unlinkIfPresent(temporary.path + suffix) }
    }

    /// Gives the file its name, only if nothing has it: `false` if something does. The file was
    /// closed and is durable.
    borrowing func adopt() throws(StoreError) -> Bool {
        try file.adopt(temporary.path)
    }
}
