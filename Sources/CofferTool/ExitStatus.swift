import Coffer

/// The exit codes of `coffer`: what a script does next depends on nothing else.
enum ExitStatus: Int32 {
    case success = 0
    /// Anything that has no code of its own.
    case failure = 1
    /// The command line cannot be understood.
    case usage = 2
    /// The file, table, bucket, key or row is not there.
    case notFound = 10
    /// Another process holds the lock: try again.
    case busy = 11
    /// The passphrase or raw key does not open the file.
    case wrongCredential = 12
    /// The file is damaged, cut short or tampered with.
    case damaged = 14
    /// The file is not of a format that this engine opens.
    case unsupportedFormat = 16
    /// The disk is full, too many files are open, or reading or writing failed.
    case noSpaceOrIO = 17
    /// Changed, and not yet everywhere: run the same command again. 3, 13, 15 and 20 are kept free
    /// for what a keyring will say.
    case unfinished = 18
    /// The secret cannot be had from where it should come from.
    case secretSource = 19
    /// The file, its folder or medium cannot be written by this user, and would have to be.
    case notWritable = 21
    /// Ctrl-C, or SIGTERM.
    case interrupted = 130

    init(_ code: StoreError.Code) {
        switch code {
        case .notFound: self = .notFound
        case .busy, .alreadyOpen: self = .busy
        case .wrongKey: self = .wrongCredential
        case .damaged, .truncated: self = .damaged
        case .notEncrypted, .notAStore, .needsNewerEngine, .needsNewerProgram, .needsMigration,
            .unsupported:
            self = .unsupportedFormat
        case .full, .io, .tooManyFiles: self = .noSpaceOrIO
        case .readOnly: self = .notWritable
        case .cancelled: self = .interrupted
        default: self = .failure
        }
    }
}
