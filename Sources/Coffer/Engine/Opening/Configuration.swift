import Logging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a store or a connection is opened.
///
/// Every option has the safe value as its default.
public struct Configuration: Sendable {
    /// How changes reach the file.
    public struct JournalMode: Sendable, Hashable, CustomStringConvertible {
        /// The name that SQLite gives the mode.
        public let description: String

        /// A write-ahead log: readers and the writer do not wait for each other.
        public static let wal = Self(description: "wal")
        /// A rollback journal: one file, no WAL next to it; reads wait for writes.
        public static let delete = Self(description: "delete")
        /// The mode that the file has; ``wal`` for a new one. For tools that maintain files whose
        /// programs chose the mode.
        public static let existing = Self(description: "existing")
        /// The mode of a database without a file: nothing of it outlives its connection.
        static let memory = Self(description: "memory")
    }

    /// The failures that a returned write survives.
    public enum Durability: Sendable {
        /// Power loss: `synchronous=FULL`, one fsync for each commit; `EXTRA` with a rollback
        /// journal, which also syncs the folder.
        case power
        /// The end of this process, not power loss: `synchronous=NORMAL` with a WAL. After a power
        /// cut the last commits may be gone; the file stays consistent.
        ///
        /// With a rollback journal it is as ``power``: SQLite's `NORMAL` and `FULL` let a power cut
        /// damage a file that a commit made shorter.
        case process
    }

    /// How opening treats a file that has several names (hard links).
    ///
    /// SQLite derives the name of a WAL or journal from the name that the file was opened under. A
    /// program that uses one name does not see changes written under another, and may undo or lose
    /// them.
    public enum HardLinks: Sendable, Hashable {
        /// Opens it and warns in ``Configuration/logger``: backup programs link files that are in
        /// use.
        case told
        /// Throws `.readOnly`, unless it is opened for reading only.
        case refused
    }

    /// How many concurrent writes share one transaction, and so one fsync.
    ///
    /// Each succeeds or fails separately: a body that throws is rolled back without the others. If
    /// SQLite ends the shared transaction or its commit fails, every write that was rolled back
    /// with it gets an error. A write with no other waiting behind it is committed at once.
    public struct GroupCommit: Sendable, Hashable {
        /// The most bodies in one transaction; 1 commits each write by itself.
        public var maximumWriteCount: Int
        /// How long a transaction may be open before it takes no further body. The last body that
        /// it took may run for longer, and the earlier ones wait for it.
        public var maximumDuration: Duration

        /// Makes the limits of a shared transaction.
        ///
        /// - Parameters:
        ///   - maximumWriteCount: The most bodies in one transaction.
        ///   - maximumDuration: How long a transaction may be open before it takes no further body.
        public init(maximumWriteCount: Int = 128, maximumDuration: Duration = .milliseconds(20)) {
            self.maximumWriteCount = maximumWriteCount
            self.maximumDuration = maximumDuration
        }

        /// Each write is committed by itself.
        public static let off = Self(maximumWriteCount: 1)
    }

    /// The file's cipher settings. With `nil`, Coffer finds those of an existing file by its first
    /// page's MAC, and takes `Engine.capabilities.defaultProfile` for a new one.
    public var profile: CipherProfile?
    /// Whether a new file can give free pages back to the disk by
    /// `Store.incrementalVacuum(pageCount:)`. An existing file keeps what it was created with.
    ///
    /// It costs: both engines then accept a page of zeros as valid, so that somebody who may write
    /// the file can blank the end of a long value without a trace (`SECURITY.md`). Without it,
    /// `Store.compact(progress:)` gives pages back.
    public var incrementalVacuum = false

    /// The journal mode; an existing file in another mode is converted.
    public var journalMode = JournalMode.wal

    /// The failures that a returned write survives; power loss by default.
    public var durability = Durability.power

    /// How long to wait for another connection's or process's lock before `.busy`.
    public var busyTimeout: Duration = .seconds(5)

    /// How to treat a file that has several names; see ``HardLinks``. Coffer checks this when it
    /// opens the file. `rekey` always refuses one.
    public var hardLinks = HardLinks.told

    /// The VFS that the engine uses for the file; `nil` for the engine's default.
    ///
    /// It must be registered before, and must show the same files under the same paths as the
    /// system does: Coffer asks the system which files exist. `sqlite3_vfs_register` registers one.
    public var vfs: String?

    /// The most connections that a store reads with at once; more reads wait in a queue.
    ///
    /// From 1 to 256; each has one descriptor, or two in WAL mode, and its share of the cache.
    public var maximumReaderCount = 4 {
        didSet { maximumReaderCount = min(max(1, maximumReaderCount), 256) }
    }

    /// How waiting writes share one commit; see ``GroupCommit``.
    public var groupCommit = GroupCommit()

    /// How long a read waits for a free connection, and `rekey` and `close` wait for running work,
    /// before `.busy`.
    public var waitTimeout: Duration = .seconds(30)

    /// How long a rotation waits for the writers of other processes, and work of this store for a
    /// rotation by another process, before `.busy`.
    ///
    /// A rotation holds up writes for about 25 s per gigabyte, longer than most values of
    /// ``busyTimeout``.
    public var rotationTimeout: Duration = .seconds(600)

    /// The longest pause of writes that a rotation may cause, by its estimate, before `.tooBig`.
    public var maximumRotationPause: Duration = .seconds(30)

    /// The number of pages in the WAL at which a store begins to move them into the main file,
    /// concurrently with writes. It does so again whenever as many are new. At least 1.
    ///
    /// When all pages were moved, one write waits while the store also moves the pages written in
    /// the meantime, fewer than this number. Then the WAL restarts.
    public var checkpointPageCount = 1000 {
        didSet { checkpointPageCount = max(1, checkpointPageCount) }
    }

    /// The size of the WAL in bytes at which a write waits for a checkpoint, and that checkpoint
    /// for the running reads. It waits once for each read that keeps the WAL, and at most 50 ms. It
    /// does not wait for a read of this store that has lasted as long already.
    ///
    /// Below this size no write waits for reads, see ``checkpointPageCount``. While a longer read
    /// runs, the WAL grows beyond it, until ``maximumSnapshotAge`` or
    /// ``maximumSnapshotWALByteCount``. After that read the file is truncated again. While another
    /// process reads, nothing bounds the WAL: see ``CheckpointStatistics/isKeptByOtherProcess``.
    public var maximumWALByteCount = 64 << 20

    /// The age at which a read's snapshot expires while it keeps the WAL above
    /// ``maximumWALByteCount``: the read's next verb throws `.snapshotExpired`.
    public var maximumSnapshotAge: Duration = .seconds(600)

    /// The size of the WAL in bytes at which the reads that keep it must end, whatever their age:
    /// their next verb throws `.snapshotExpired`. 1 GiB by default; at least
    /// ``maximumWALByteCount``.
    ///
    /// Writes have already waited for these reads by then, or passed them over. If only short reads
    /// that overlap keep the WAL, one write waits for them here, for a second at most.
    public var maximumSnapshotWALByteCount = 1 << 30

    /// How often a store checks whether another process has committed, while somebody observes it.
    /// Such a commit may be noticed this late. `nil` for never; at least 1 ms.
    ///
    /// The check reads shared memory once (a few µs), or with a rollback journal the file's header.
    /// Without observers there is neither a timer nor a thread.
    public var foreignCommitInterval: Duration? = .seconds(1) {
        didSet { foreignCommitInterval = foreignCommitInterval.map { max($0, .milliseconds(1)) } }
    }

    /// Bytes of decrypted pages kept in memory, shared equally by all connections of a store; at
    /// least 256 KiB for each of them.
    ///
    /// A ceiling, not a reservation: a cache never holds more than the file has. Decrypting a page
    /// that is not in the cache costs about 11 µs (SQLCipher 3) or 15 µs (SQLCipher 4). With many
    /// stores each gets less, so that together they keep to ``Store/maximumProcessCacheByteCount``.
    public var maximumCacheByteCount = 256 << 20 {
        didSet { maximumCacheByteCount = max(0, maximumCacheByteCount) }
    }

    /// The cache of decoded bucket values, which ``Store`` keeps for single gets; `nil` for none.
    public var bucketCache: BucketCache?

    /// The page cache budget that the stores of the process share.
    var cacheBudget = PageCacheBudget.shared

    /// The threads that run asynchronous bodies; by default those of the process.
    var threads = WorkThreads.shared

    /// Gives the time by which entries of buckets expire; the system's clock by default.
    ///
    /// A test sets it to move the time. All programs that use a file must agree on the time.
    public var currentDate: @Sendable () -> Date = { Date() }

    /// How often a store removes entries of buckets that have expired; a minute by default, `nil`
    /// for never, at least 1 ms. See `Store.sweepExpiredEntries(sliceCount:)`.
    ///
    /// A store begins with it when it has given an entry a time of expiry. It works in slices of
    /// 256 entries, between other writes, which wait for one slice at most. Beside other writes of
    /// the store the slices take half a percent of the time; if they have not removed all after
    /// two intervals, more by and by. If no entry ends in the interval it waits longer, up to
    /// an hour.
    public var expirySweepInterval: Duration? = .seconds(60) {
        didSet { expirySweepInterval = expirySweepInterval.map { max($0, .milliseconds(1)) } }
    }

    /// The most compiled statements that each connection keeps; the least recently used go first.
    public var maximumStatementCount = 64

    /// Runs on every connection as soon as it is open: registers functions, sets limits.
    ///
    /// A store opens several connections, and reopens each after a change of the key. So set here
    /// what a connection loses when it closes. A `StoreError` that it throws is the error of
    /// opening; any other error becomes the cause of a `.misuse`.
    public var prepare: (@Sendable (Connection) throws -> Void)?

    /// Names that full-text tables (FTS3, FTS4) may use for `coffer` in `tokenize=coffer name`.
    ///
    /// For files whose tables say `tokenize=fmdb` or `tokenize=fmdb name`: give `["fmdb"]`. The
    /// argument names a tokenizer of `Connection.register(tokenizer:named:)`; without an argument,
    /// the module's own name does. The engine's own tokenizers of these names are replaced.
    public var tokenizerModules: [String] = []

    /// The destination of log events, which never contain a key, a value or an SQL text.
    ///
    /// A store logs events that an operator wants to know later, with its `path`. The `code` of a
    /// ``StoreError`` says what went wrong. A read or write that succeeds logs nothing, nor does
    /// one whose error concerns only its caller. A handler must not use the store: a write may wait
    /// for it.
    ///
    /// | Level | Event | Metadata |
    /// |---|---|---|
    /// | debug | store opened | `profile`, `journalMode`, `derivation` of the key |
    /// | debug | store closed, suspended, resumed | |
    /// | info | rekey begins | |
    /// | notice | the key was changed | `duration` |
    /// | warning | the main file has the old key until a checkpoint | `pages`, `code` |
    /// | notice | store reopened with another key | |
    /// | notice | writes will wait while the key is rotated | `estimate` |
    /// | notice | the key was rotated | `from`, `to`, `pause` |
    /// | warning | the new epoch could not be recorded in the keyring | `code` |
    /// | notice | another process has rotated the key, and the store goes on | `epoch` |
    /// | notice | a slot of the keyring was added, changed, renamed or removed | `slot`, `kind` |
    /// | notice | the root key is shown as a root backup | `count` so far |
    /// | notice | the keyring did not have the epoch of the file, and was mended | `epoch` |
    /// | warning | the keyring could not be brought up to date | `code` |
    /// | notice | SQLCipher 3 is old, once in a process | |
    /// | warning | memory of keys is not locked, once in a process | |
    /// | warning | the file has several names, when it is opened | `count` |
    /// | warning | readers keep the write-ahead log above its bound | `pages`, `maximumPageCount` |
    /// | warning | another process keeps the write-ahead log above its bound | the same |
    /// | warning | snapshots were ended for the write-ahead log | `count`, `age` |
    /// | warning | checkpoint failed | `code`, `resultCode` |
    /// | warning | commit failed | `code`, `resultCode`; `count` of the writes in it |
    /// | warning | writes were rolled back with another one | the same, of that one |
    /// | error | the key was not changed, or nobody knows | `code`, `resultCode` |
    /// | error | another process has changed the key | |
    /// | error | damage found, by a read or write | `pages` if known, `code`, `resultCode` |
    /// | error | verification found damage | `pages` |
    /// | notice | replica begins | `remote`, `position` |
    /// | warning | replica cannot be brought up to date, once an hour | `remote`, `code`, `age` |
    /// | warning | replica has no new snapshot | `remote`, `code` |
    /// | notice | replica has everything again | `remote` |
    /// | error | replica has ended | `remote`, `code` |
    /// | debug | replica closed | `remote` |
    public var logger: Logger?

    /// Distinguishes the store's metrics from those of other stores: the value of their dimension
    /// `store`. `nil` for the name of the file, without its folder; empty for no dimension.
    ///
    /// Backends keep a series for each value, and show it to all their readers. If there are many
    /// file names, or they name persons, give all such stores one label. Their counters and timers
    /// then add up, and their gauges have the last reporting store's value.
    ///
    /// | Metric | Meaning |
    /// |---|---|
    /// | `coffer.key.derivation` | how long deriving the key took |
    /// | `coffer.rekey` | how long changing the key took |
    /// | `coffer.rotation`, `coffer.rotation.pause` | how long rotations took, writes waited |
    /// | `coffer.key.heals` | how often another process's rotation was followed |
    /// | `coffer.read`, `coffer.read.wait` | how long reads took, and waited before |
    /// | `coffer.write.wait`, `coffer.write.depth` | how long writes waited, how many do |
    /// | `coffer.write.undone` | bodies that were rolled back |
    /// | `coffer.commit`, `coffer.commit.bodies` | how long commits took, of how many bodies |
    /// | `coffer.cache.hits`, `coffer.cache.misses` | pages found decrypted, and those not |
    /// | `coffer.checkpoint`, `coffer.log.pages` | how long checkpoints took, the WAL's size |
    /// | `coffer.replica.sent`, `coffer.replica.pass` | bytes for a remote, how long a pass took |
    /// | `coffer.replica.failures` | how often a pass or a call of a remote failed |
    /// | `coffer.replica.age` | seconds since the remote last had everything; 0 after each pass |
    ///
    /// A ``StorePool`` has metrics of its own, without a dimension:
    ///
    /// | Metric | Meaning |
    /// |---|---|
    /// | `coffer.pool.open`, `coffer.pool.pinned` | stores that are open, and in use |
    /// | `coffer.pool.waiting`, `coffer.pool.wait` | uses that wait, and how long each did |
    /// | `coffer.pool.opened`, `coffer.pool.parked` | how often stores were opened, parked |
    /// | `coffer.pool.failures` | keys and openings that failed or took too long |
    ///
    /// A program must bootstrap swift-metrics before it opens the store.
    public var metricsLabel: String?

    /// Begins a span for each read and write, see ``StoreTracer``; `nil` for none.
    ///
    /// `CofferService` has one for swift-distributed-tracing.
    public var tracer: (any StoreTracer)?

    /// The most memory that the derivation of a keyring's passphrase may take, in bytes; 160 MiB
    /// unless it is set. A slot that needs more throws `.tooCostly`, and nothing is allocated.
    public var maximumKeyMemoryByteCount = 160 << 20

    /// The cost of the first slot of a keyring that is made with a passphrase.
    public var keyCost = KeyCost.standard

    /// The defaults.
    public init() {}

    /// The seconds since 1970 by ``currentDate``, as keyrings store times; 0 for a date that is not
    /// a number.
    var secondsSince1970: Int64 {
        Int64(exactly: currentDate().timeIntervalSince1970.rounded(.towardZero)) ?? 0
    }

    /// The stamp of a store's file, if it is old; a test tells what no program can set.
    var stampOfOldFile: @Sendable (FileLocation) -> FileStamp? = FileStamp.ofOldFile

    /// Called before each step of a write of a keyring; a test stops or fails it there.
    var keyringWillStep: (@Sendable (KeyringFile.Step, Int32) throws(StoreError) -> Void)?

    /// The same configuration. If its journal mode is `.existing`, the result of `existing`
    /// replaces the mode. Throws only errors of `existing`.
    func resolved(
        _ existing: @autoclosure () throws(StoreError) -> JournalMode
    )
        throws(StoreError) -> Configuration
    {
        guard journalMode == .existing else { return self }
        var configuration = self
        configuration.journalMode = try existing()
        return configuration
    }
}

/// Whether the file must exist, may be created, or is only read.
public enum OpenMode: Sendable {
    /// Opens the file, or creates an encrypted one if there is none. An existing empty file is
    /// `.truncated`, never a fresh store.
    case createIfMissing
    /// Opens the file; `.notFound` if there is none.
    case mustExist
    /// Opens the file for reading only; `.notFound` if there is none.
    ///
    /// Its content stays as it is, and no new file remains next to it. First SQLite undoes what a
    /// crash left unfinished, as at every opening: it plays back a rollback journal, which requires
    /// the right to write. Without that right, opening throws `.readOnly`. It does so too for a WAL
    /// that this user cannot read.
    ///
    /// A file in WAL mode is readable without any right to write, if it has no WAL. It is then read
    /// without locks, and `.busy` is thrown once somebody has changed it.
    case readOnly
}
