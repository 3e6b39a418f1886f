import Coffer

/// The exit codes of `coffer`. A script can choose its next step by them alone.
enum ExitStatus: Int32 {
    case success = 0
    /// Any failure without its own code.
    case failure = 1
    /// The command line cannot be understood.
    case usage = 2
    /// The file, table, bucket, key or row does not exist.
    case notFound = 10
    /// Another process holds the lock: try again.
    case busy = 11
    /// The passphrase or raw key does not open the file.
    case wrongCredential = 12
    /// The file is damaged, cut short or tampered with.
    case damaged = 14
    /// This engine does not open the file's format.
    case unsupportedFormat = 16
    /// The disk is full, too many files are open, or reading or writing failed.
    case noSpaceOrIO = 17
    /// The change is made, but not complete: run the same command again. 3, 13, 15 and 20 are
    /// reserved for a keyring.
    case unfinished = 18
    /// The secret cannot be read from its source.
    case secretSource = 19
    /// The file, its folder or its medium must be writable, but this user cannot write it.
    case notWritable = 21
    /// Ctrl-C, SIGTERM, SIGHUP or SIGQUIT; or a change of the key that could not be proven.
    case interrupted = 130

    init(_ code: StoreError.Code) {
        switch code {
        case .notFound: self = .notFound
        case .busy, .alreadyOpen: self = .busy
        case .wrongKey: self = .wrongCredential
        case .damaged, .truncated: self = .damaged
        case .notEncrypted, .notAStore, .needsNewerEngine, .needsNewerProgram, .needsUpgrade,
            .unsupported:
            self = .unsupportedFormat
        case .full, .io, .tooManyFiles: self = .noSpaceOrIO
        case .readOnly: self = .notWritable
        case .cancelled: self = .interrupted
        default: self = .failure
        }
    }
}
