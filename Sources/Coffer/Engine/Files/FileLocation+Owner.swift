import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Several users share a file: which user may write it, and which could use the files that another
/// user's connection creates next to it.
extension FileLocation {
    /// Whether this user may change the file, and may create and remove files in its folder.
    var isWritable: Bool {
        faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0
            && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0
    }

    var notWritable: StoreError {
        StoreError(
            .readOnly, "\(path) cannot be written",
            hint: "Allow writing to the file and its folder, or open it for reading only.")
    }

    /// Refuses a writer before the engine creates files next to the store: they would get the
    /// store's permissions, and remain.
    ///
    /// - Throws: `.readOnly` if the engine could open the file for reading only, or if this user
    ///   may not use a file next to it.
    func requireWritable(_ handle: Handle) throws(StoreError) {
        guard sqlite3_db_readonly(handle.db, "main") != 1 else { throw notWritable }
        if let refusal = companionRefusal(nil) { throw refusal }
    }

    /// Checks that this user may read the file. A missing file passes.
    ///
    /// - Throws: `.io` if this user may not read the file.
    func requireReadable() throws(StoreError) {
        guard faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0, errno == EACCES else { return }
        throw StoreError(
            .io, "this user may not read \(path)\(Self.permissions(path))",
            hint: "Run it as a user who may, or allow reading the file.")
    }

    /// `.readOnly` if a WAL, WAL index or journal exists next to the file that this user may not
    /// read and write; `nil` if this user may use all of them.
    ///
    /// - Parameter cause: The error that the result gets as its cause.
    func companionRefusal(_ cause: StoreError?) -> StoreError? {
        for suffix in ["-shm", "-wal", "-journal"] {
            let companion = path + suffix
            guard (try? Self.information(companion)) != nil,
                faccessat(AT_FDCWD, companion, R_OK | W_OK, AT_EACCESS) != 0, errno == EACCES
            else { continue }
            let remedy =
                suffix == "-shm"
                ? "remove it while nobody has the store open" : "never remove it: it holds commits"
            return StoreError(
                .readOnly,
                "this user may not read and write \(companion)\(Self.permissions(companion))",
                hint: "Allow it, or \(remedy).", resultCode: cause?.resultCode, cause: cause)
        }
        return nil
    }

    /// The owner of a file and its mode, in parentheses for a message; empty if there is no file.
    private static func permissions(_ path: String) -> String {
        guard let found = try? information(path) else { return "" }
        let digits = String(found.st_mode & 0o7777, radix: 8)
        let mode = String(repeating: "0", count: max(0, 3 - digits.count)) + digits
        return " (it belongs to \(name(ofUser: found.st_uid)), mode \(mode))"
    }

    /// The name of the file's owner, `nil` if this user owns it.
    var otherOwner: String? {
        guard let found = try? Self.information(path), found.st_uid != geteuid() else {
            return nil
        }
        return Self.name(ofUser: found.st_uid)
    }

    /// The name of the file's owner, if that user could not open the files that SQLite would create
    /// next to the file for this user.
    ///
    /// SQLite gives a WAL and its index the permissions of the file. If root creates them, SQLite
    /// also gives them the file's owner: `findCreateFileMode` and `robustFchown` in `os_unix.c`.
    /// Otherwise they belong to the user that created them.
    var lockedOutOwner: String? {
        let user = geteuid()
        guard user != 0, let found = try? Self.information(path), found.st_uid != user,
            let folder = try? Self.information(folder)
        else { return nil }
        #if canImport(Darwin)
        let group = folder.st_gid
        #else
        let group = folder.st_mode & S_ISGID == 0 ? getegid() : folder.st_gid
        #endif
        let isMember = coffer_is_member(found.st_uid, group)
        let permissions = isMember ? found.st_mode >> 3 : found.st_mode
        return permissions & 0o6 == 0o6 ? nil : Self.name(ofUser: found.st_uid)
    }

    private static func name(ofUser user: uid_t) -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard coffer_user_name(user, &name, name.count) else { return "user \(user)" }
        return name.withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { String(cString: $0) } ?? ""
        }
    }
}
