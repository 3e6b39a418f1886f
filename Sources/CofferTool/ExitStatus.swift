import Coffer

/// The exit codes of `coffer`. A script can choose its next step by them alone.
///
/// The name of each case is the `code` of an error in JSON, so that both say the same.
enum ExitStatus: Int32, CaseIterable {
    case success = 0
    /// Any failure without its own code.
    case failure = 1
    /// The command line cannot be understood.
    case usage = 2
    /// Some stores of a list are not done.
    case partlyFailed = 3
    /// The file, table, bucket, key or row does not exist.
    case notFound = 10
    /// Another process holds the lock: try again.
    case busy = 11
    /// The passphrase or raw key does not open the file.
    case wrongKey = 12
    /// The slot is the only one of its keyring.
    case lastSlot = 13
    /// The file or its keyring is damaged, cut short or tampered with.
    case damaged = 14
    /// The keyring is missing or another store's, or the file is older than its keyring.
    case keyring = 15
    /// This engine does not open the file's format.
    case unsupportedFormat = 16
    /// The disk is full, too many files are open, this user may not read the file, or reading or
    /// writing failed.
    case io = 17
    /// The change is made, but not complete: run the same command again.
    case unfinished = 18
    /// The secret cannot be read from its source.
    case secretSource = 19
    /// The passphrase of a keyring would take more memory or time than is allowed.
    case tooCostly = 20
    /// The file, its folder or its medium must be writable, but this user cannot write it.
    case notWritable = 21
    /// The path of a new file, the name of a new table, or the key of an imported entry is taken.
    case alreadyExists = 22
    /// A UNIQUE, NOT NULL, CHECK or FOREIGN KEY constraint refused the change.
    case constraint = 23
    /// The SQL text cannot be compiled or run, or Coffer refuses it.
    case sql = 24
    /// The input is not in the format that was named, or a value does not fit where it belongs.
    case badInput = 25
    /// The statement would change the store, and `--write` is not given.
    case wouldChange = 26
    /// A remote cannot be reached, refuses this user, or does not keep what a replica needs.
    case remote = 27
    /// Another owner replicates to the remote, or has taken it over.
    case otherOwner = 28
    /// The remote has the replica of another store, or later commits than the store.
    case otherReplica = 29
    /// Ctrl-C, SIGTERM, SIGHUP or SIGQUIT; or a change of the key that could not be proven.
    case interrupted = 130

    init(_ error: StoreError) {
        switch error.code {
        case .notFound: self = .notFound
        case .busy, .alreadyOpen: self = .busy
        case .wrongKey: self = .wrongKey
        case .damaged, .truncated, .keyringDamaged: self = .damaged
        case .lastSlot: self = .lastSlot
        case .keyringMissing, .keyringMismatch, .olderFile: self = .keyring
        case .tooCostly: self = .tooCostly
        case .notEncrypted, .notAStore, .needsNewerEngine, .needsNewerProgram, .needsUpgrade,
            .unsupported:
            self = .unsupportedFormat
        case .full, .io, .tooManyFiles: self = .io
        case .readOnly: self = .notWritable
        case .cancelled: self = .interrupted
        case .alreadyExists: self = .alreadyExists
        case .constraint, .conflict: self = .constraint
        case .sql: self = .sql
        // A statement that the authorizer refuses; all other misuse is the tool's own mistake.
        case .misuse where error.sql != nil: self = .sql
        case .mismatch, .tooBig: self = .badInput
        case .remoteUnavailable, .remoteDenied, .remoteUnfit: self = .remote
        case .remoteDamaged: self = .damaged
        case .ownedElsewhere, .fenced: self = .otherOwner
        case .remoteAhead, .remoteOfAnotherStore: self = .otherReplica
        default: self = .failure
        }
    }

    /// What the code means for the user, in a few words, for help and manual.
    var meaning: String {
        switch self {
        case .success: "done"
        case .failure: "failed for a reason without a code of its own"
        case .usage: "wrong usage"
        case .partlyFailed: "some stores of a list are not done"
        case .notFound: "not found"
        case .busy: "busy or locked: try again"
        case .wrongKey: "wrong passphrase or key"
        case .lastSlot: "the keyring's only slot"
        case .damaged: "damaged or tampered"
        case .keyring: "keyring missing or another store's, or file older than its keyring"
        case .unsupportedFormat: "format that this engine does not open"
        case .io: "disk full, unreadable file or I/O error"
        case .unfinished: "changed, but not completely"
        case .secretSource: "the secret cannot be obtained"
        case .tooCostly: "passphrase too costly to derive"
        case .notWritable: "must be writable, but this user cannot write it"
        case .alreadyExists: "exists already"
        case .constraint: "a constraint refused the change"
        case .sql: "SQL that cannot be run"
        case .badInput: "bad input"
        case .wouldChange: "would change the store, but --write is not given"
        case .remote: "remote unreachable, refusing or unfit"
        case .otherOwner: "another owner replicates"
        case .otherReplica: "replica of another store, or ahead of the store"
        case .interrupted: "interrupted"
        }
    }

    /// All codes and their meanings, for the help.
    static let list = allCases.map { "\($0.rawValue) \($0.meaning)" }.joined(separator: "; ")
}
