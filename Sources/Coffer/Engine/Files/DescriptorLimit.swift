#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The bound on open files, where an operation of the system's has failed on it.
enum DescriptorLimit {
    case ofProcess, ofSystem

    /// - Parameter systemError: The system's number; `nil` for one that means something else.
    init?(systemError: Int32) {
        switch systemError {
        case EMFILE: self = .ofProcess
        case ENFILE: self = .ofSystem
        default: return nil
        }
    }

    var message: String {
        switch self {
        case .ofProcess:
            // The soft one of RLIMIT_NOFILE, on Linux and Darwin.
            "this process may have \(sysconf(Int32(_SC_OPEN_MAX))) files open, and it has"
        case .ofSystem: "the system has as many files open as it may"
        }
    }

    /// Of a store in WAL mode the writer has the file, its log and the index of the log; each
    /// reader and the connection of checkpoints have the file and the log.
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
