#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The limit on open files that made a system call fail.
enum DescriptorLimit {
    case ofProcess, ofSystem

    /// The limit that an error number of the system is about; `nil` if it is not about a limit on
    /// open files.
    ///
    /// - Parameter systemError: A value of `errno`: `EMFILE` or `ENFILE` gives a limit.
    init?(systemError: Int32) {
        switch systemError {
        case EMFILE: self = .ofProcess
        case ENFILE: self = .ofSystem
        default: return nil
        }
    }

    /// How many files this process may have open (`RLIMIT_NOFILE`); `nil` without a limit.
    static var countOfProcess: Int? {
        let count = sysconf(Int32(_SC_OPEN_MAX))
        return count < 0 ? nil : count
    }

    var message: String {
        switch self {
        case .ofProcess:
            // The soft limit RLIMIT_NOFILE, on Linux and Darwin.
            "this process has \(sysconf(Int32(_SC_OPEN_MAX))) files open, which is its limit"
        case .ofSystem: "the system has reached its limit of open files"
        }
    }

    /// For a store in WAL mode, the writer has the file, its WAL and the WAL index open. Each
    /// reader, and the connection that runs checkpoints, has the file and the WAL open.
    var hint: String {
        let counts = "a store takes 5 of them, and 2 for each reader: 13 with 4 readers"
        switch self {
        case .ofProcess:
            return "Raise the limit (ulimit -n, RLIMIT_NOFILE), or close stores: \(counts)."
        case .ofSystem:
            return "Raise the limit (fs.file-max, kern.maxfiles), or close files: \(counts)."
        }
    }
}

extension StoreError {
    /// The error of a system call: `.tooManyFiles` if a limit on open files is the reason, else
    /// `.io`.
    ///
    /// - Parameters:
    ///   - number: The system's error number (`errno`).
    ///   - text: What failed, without the reason.
    package static func system(_ number: Int32, _ text: String) -> StoreError {
        guard let limit = DescriptorLimit(systemError: number) else {
            return StoreError(.io, "\(text): \(systemErrorText(number))")
        }
        return StoreError(.tooManyFiles, "\(text): \(limit.message)", hint: limit.hint)
    }

    /// The error for a new file at a path that is taken.
    static func alreadyExists(_ file: FileLocation) -> StoreError {
        StoreError(
            .alreadyExists, "something exists at \(file.path) already; it was left alone",
            hint: "Choose another path, or move what exists there.")
    }

    /// The error for a file that the system did not create.
    static func notCreated(_ path: String, _ number: Int32) -> StoreError {
        notWritten(
            "cannot create \(path)", number, hint: "This user must be allowed to write its folder.")
    }

    /// The error for a file that the system did not let this process make, change or rename.
    static func notWritten(
        _ text: String, _ number: Int32,
        hint: String = "This user must be allowed to write the file and its folder."
    ) -> StoreError {
        switch number {
        case EACCES, EPERM, EROFS:
            return StoreError(
                .readOnly, "\(text): \(systemErrorText(number))",
                hint: hint)
        case ENOSPC, EDQUOT:
            return StoreError(
                .full, "\(text): \(systemErrorText(number))",
                hint: "Free some space and try again.")
        default: return system(number, text)
        }
    }
}
