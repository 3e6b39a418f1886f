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
    /// 1. The old main file gets a second name.
    /// 2. The old WAL and journal move next to that name, because SQLite would replay them into
    ///    the new file. So does the keyring, unless it is also the keyring of the new file.
    /// 3. The new file takes the path, in one step.
    ///
    /// A step that fails is undone with those before it. No step forward undoes another, so a
    /// process that is killed loses nothing. If it is killed between 2 and 3, the old main file is
    /// at its path without its last commits; whole, it is at the second name. Its keyring may have
    /// moved to that name too. The next call goes on with that name.
    ///
    /// - Parameters:
    ///   - movesKeyring: Whether the keyring goes with the old file.
    ///   - keyring: The keyring of the new file, which is made between steps 2 and 3.
    ///   - willRename: Called before each step; an error ends the work there.
    /// - Returns: The new name of the old file: the path, `.old-` and a number.
    /// - Throws: `.io` if a file cannot be renamed. Everything then has the name that it had,
    ///   unless the error says otherwise.
    func replace(
        with temporary: String, movesKeyring: Bool = false, keyring: KeyringArea? = nil,
        _ willRename: () throws(StoreError) -> Void
    ) throws(StoreError) -> String {
        try willRename()
        let aside = try setAside()
        var moved: [String] = []
        var hasMadeKeyring = false
        var movedKeyring: String?
        do throws(StoreError) {
            for suffix in Self.companions {
                try willRename()
                if rename(path + suffix, aside.path + suffix) == 0 {
                    moved.append(suffix)
                } else if errno != ENOENT {
                    throw StoreError.system(errno, "cannot rename \(path)\(suffix)")
                }
            }
            // The index of a WAL that is not there any more. The engine makes it again.
            unlink(path + "-shm")
            syncFolder()
            if movesKeyring {
                try willRename()
                movedKeyring = try moveKeyring(to: aside)
            }
            if let keyring {
                try willRename()
                // Takes the permissions of the new file: without hard links the old one was
                // renamed, and nothing is at the path.
                let permissions = try FileLocation(resolved: temporary).permissions()
                try KeyringFile(of: self).makeNew(keyring, permissions: permissions)
                hasMadeKeyring = true
            }
            try willRename()
            guard rename(temporary, path) == 0 else {
                throw StoreError.system(errno, "cannot rename \(temporary) to \(path)")
            }
        } catch {
            let keyringError = putKeyringBack(movedKeyring, hasMade: hasMadeKeyring, after: error)
            throw putBack(aside, moved, after: keyringError)
        }
        syncFolder()
        return aside.path
    }

    /// Moves the keyring to the other name of its file. Chooses a third name if a killed run has
    /// left a keyring there.
    ///
    /// - Returns: The new path of the keyring.
    private func moveKeyring(to aside: Aside) throws(StoreError) -> String {
        let keyring = KeyringFile(of: self)
        let other = FileLocation(resolved: aside.path + KeyringFile.suffix)
        return try other.adopt(keyring.location.path) ? other.path : try keyring.setAside()
    }

    /// Removes the new keyring, and gives the old one its name again.
    ///
    /// - Returns: The error. If that fails, the error also says where the old keyring is.
    private func putKeyringBack(
        _ moved: String?, hasMade: Bool, after error: StoreError
    ) -> StoreError {
        let keyring = KeyringFile(of: self).location
        if hasMade, unlink(keyring.path) != 0, errno != ENOENT {
            return error.adding(
                "the keyring of the backup is at \(keyring.path) and could not be removed: "
                    + systemErrorText(errno)
                    + (moved.map { "; the store's own keyring is \($0)" } ?? ""))
        }
        guard let moved else { return error }
        if (try? keyring.adopt(moved)) == true { return error }
        return error.adding("the store's keyring is now \(moved) and could not be moved back")
    }

    private static let companions = ["-wal", "-journal"]

    /// The other name of a file that is replaced.
    private struct Aside {
        enum Kind {
            /// A second name, which this call gave.
            case linked
            /// A second name from a run that was killed.
            case found
            /// The only name: the file system has no hard links.
            case renamed
        }

        let path: String
        let kind: Kind
    }

    /// Gives everything the name that it had, last step first.
    ///
    /// - Parameter moved: The suffixes of the files that have moved.
    /// - Returns: The error; if a file could not be moved back, one that says where it is.
    private func putBack(
        _ aside: Aside, _ moved: [String], after error: StoreError
    ) -> StoreError {
        defer { syncFolder() }
        for suffix in moved.reversed() {
            guard rename(aside.path + suffix, path + suffix) == 0 else {
                return stuck(suffix, aside, errno, after: error)
            }
        }
        switch aside.kind {
        case .found: return error
        case .linked:
            return unlink(aside.path) == 0 ? error : stuck("", aside, errno, after: error)
        case .renamed:
            if coffer_rename_exclusively(aside.path, path) == 0 { return error }
            // For systems without that call.
            if errno != EEXIST, rename(aside.path, path) == 0 { return error }
            return stuck("", aside, errno, after: error)
        }
    }

    private func stuck(
        _ suffix: String, _ aside: Aside, _ reason: Int32, after error: StoreError
    ) -> StoreError {
        let isSecond = suffix.isEmpty && aside.kind == .linked
        let state =
            isSecond
            ? "the second name \(aside.path) could not be removed again"
            : "\(path)\(suffix) is now \(aside.path)\(suffix) and could not be moved back"
        return StoreError(
            error.code, "\(error.message); \(state): \(systemErrorText(reason))",
            hint: isSecond
                ? "Remove that name, or restore again."
                : "Restore again, or move the file back before anybody opens the store.",
            cause: error)
    }

    /// Gives the file a second name; on a file system without hard links another name. A second
    /// name from a run that was killed is used again.
    private func setAside() throws(StoreError) -> Aside {
        for number in 1...10_000 {
            let old = "\(path).old-\(number)"
            if isOwnName(old),
                Self.companions.allSatisfy({ !(exists(path + $0) && exists(old + $0)) })
            {
                return Aside(path: old, kind: .found)
            }
            // A WAL or a keyring with that name belongs to another file.
            guard !(([""] + Self.companions + [KeyringFile.suffix]).contains { exists(old + $0) })
            else { continue }
            if link(path, old) == 0 { return Aside(path: old, kind: .linked) }
            if errno == EEXIST { continue }
            guard coffer_rename_exclusively(path, old) == 0 || rename(path, old) == 0 else {
                throw StoreError.system(errno, "cannot rename \(path)")
            }
            return Aside(path: old, kind: .renamed)
        }
        throw StoreError(
            .alreadyExists, "\(path).old-1 to \(path).old-10000 exist",
            hint: "Move those away that you do not need any more.")
    }

    /// Whether something has the name, a link that leads nowhere included. A name of which the
    /// system says nothing counts as taken.
    private func exists(_ name: String) -> Bool {
        var found = stat()
        return lstat(name, &found) == 0 || errno != ENOENT
    }

    /// Whether the other path is a hard link to the file.
    private func isOwnName(_ name: String) -> Bool {
        var (own, other) = (stat(), stat())
        return lstat(path, &own) == 0 && lstat(name, &other) == 0
            && (own.st_dev, own.st_ino) == (other.st_dev, other.st_ino)
    }

    /// Gives the file the owner and the group of another, if this process may. Follows no link: a
    /// user of the folder may have put one in the place of the file.
    ///
    /// - Parameter descriptor: The open file, if this process has it open.
    /// - Throws: `.io` if the system refuses: the owner could not open the file.
    func setOwner(of other: FileLocation, _ descriptor: Int32? = nil) throws(StoreError) {
        guard let found = try Self.information(other.path), let own = try Self.information(path),
            found.st_uid != own.st_uid || found.st_gid != own.st_gid
        else { return }
        let result =
            descriptor.map { fchown($0, found.st_uid, found.st_gid) }
            ?? lchown(path, found.st_uid, found.st_gid)
        guard result == 0 || found.st_uid == own.st_uid else {
            throw StoreError.system(errno, "cannot give \(path) the owner of \(other.path)")
        }
    }
}
