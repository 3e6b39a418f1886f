import CSQLCipher

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Users who share a file: who may write it, and who could use what another one makes beside it.
extension FileLocation {
    /// Whether this user may change the file, and make and remove others beside it.
    var isWritable: Bool {
        faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0
            && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0
    }

    var notWritable: StoreError {
        StoreError(
            .readOnly, "\(path) cannot be written",
            hint: "Allow writing to the file and its folder, or open it for reading only.")
    }

    /// Refuses a writer before the engine makes files beside the store: they would have its
    /// permissions, and stay.
    ///
    /// - Throws: `.readOnly` if the engine could open the file for reading only, or if this user
    ///   may not use what is beside it.
    func requireWritable(_ handle: Handle) throws(StoreError) {
        guard sqlite3_db_readonly(handle.db, "main") != 1 else { throw notWritable }
        if let refusal = companionRefusal(nil) { throw refusal }
    }

    /// - Throws: `.io` if this user may not read the file.
    func requireReadable() throws(StoreError) {
        guard faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0, errno == EACCES else { return }
        throw StoreError(
            .io, "this user may not read \(path)\(Self.permissions(path))",
            hint: "Run it as a user who may, or allow reading the file.")
    }

    /// Why the engine cannot use what is beside the file; `nil` if that is not the reason.
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

    /// Whose a file is and what its mode allows, as a remark.
    private static func permissions(_ path: String) -> String {
        guard let found = try? information(path) else { return "" }
        let mode = String(found.st_mode & 0o7777, radix: 8)
        return " (it belongs to \(name(ofUser: found.st_uid)), mode \(mode))"
    }

    /// The name of the file's owner, `nil` if that is this user.
    var otherOwner: String? {
        guard let found = try? Self.information(path), found.st_uid != geteuid() else {
            return nil
        }
        return Self.name(ofUser: found.st_uid)
    }

    /// The name of the file's owner, if that one could not open what SQLite would make beside the
    /// file for this user.
    ///
    /// SQLite gives a log and its index the permissions of the file, and if root makes them, its
    /// owner: `findCreateFileMode` and `robustFchown` in `os_unix.c`. Else they belong to who made
    /// them.
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
