import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension FileLocation {
    /// Gives the file at `temporary` this path, and what has the path now another name.
    ///
    /// No step undoes another, so a process that is killed loses nothing:
    ///
    /// 1. The old main file gets a second name.
    /// 2. The old WAL and journal move next to that name, because SQLite would replay them into
    ///    the new file.
    /// 3. The new file takes the path, in one step.
    ///
    /// A process that is killed between 2 and 3 leaves the old main file at its path without its
    /// last commits; whole, it is at the second name.
    ///
    /// - Parameter willRename: Called before each step; an error ends the work there.
    /// - Returns: The new name of the old file: the path, `.old-` and a number.
    /// - Throws: `.io` if a file cannot be renamed.
    func replace(
        with temporary: String, _ willRename: () throws(StoreError) -> Void
    ) throws(StoreError) -> String {
        try willRename()
        let (old, isLinked) = try setAside()
        for suffix in ["-wal", "-journal"] {
            try willRename()
            guard rename(path + suffix, old + suffix) == 0 || errno == ENOENT else {
                throw StoreError.system(errno, "cannot rename \(path)\(suffix)")
            }
        }
        // The index of a WAL that is not there any more.
        unlink(path + "-shm")
        syncFolder()
        try willRename()
        guard rename(temporary, path) == 0 else {
            let reason = errno
            // Nothing is at the path.
            if !isLinked { rename(old, path) }
            throw StoreError.system(reason, "cannot rename \(temporary) to \(path)")
        }
        syncFolder()
        return old
    }

    /// Gives the file a second name; on a file system without hard links another name.
    private func setAside() throws(StoreError) -> (path: String, isLinked: Bool) {
        for number in 1...10_000 {
            let old = "\(path).old-\(number)"
            // A WAL there belongs to another file.
            guard try Self.information(old) == nil, try Self.information(old + "-wal") == nil,
                try Self.information(old + "-journal") == nil
            else { continue }
            if link(path, old) == 0 { return (old, true) }
            if errno == EEXIST { continue }
            guard coffer_rename_exclusively(path, old) == 0 || rename(path, old) == 0 else {
                throw StoreError.system(errno, "cannot rename \(path)")
            }
            return (old, false)
        }
        throw StoreError(
            .alreadyExists, "\(path).old-1 to \(path).old-10000 exist",
            hint: "Move those away that you do not need any more.")
    }

    /// Gives the file the owner and the group of another, if this process may.
    ///
    /// - Throws: `.io` if the system refuses: the owner could not open the file.
    func setOwner(of other: FileLocation) throws(StoreError) {
        guard let found = try Self.information(other.path), let own = try Self.information(path),
            found.st_uid != own.st_uid || found.st_gid != own.st_gid
        else { return }
        guard chown(path, found.st_uid, found.st_gid) == 0 || found.st_uid == own.st_uid else {
            throw StoreError.system(errno, "cannot give \(path) the owner of \(other.path)")
        }
    }
}
