import Logging

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
        /// A rollback journal: one file, no log beside it; reads wait for writes.
        public static let delete = Self(description: "delete")
        /// The mode that the file has; ``wal`` for a new one. For tools that look after files
        /// whose programs chose the mode.
        public static let existing = Self(description: "existing")
        /// What a database without a file has: nothing of it outlives its connection.
        static let memory = Self(description: "memory")
    }

    /// What a returned write has survived.
    public enum Durability: Sendable {
        /// Power loss: `synchronous=FULL`, one fsync for each commit; `EXTRA` with a rollback
        /// journal, which also syncs the folder.
        case power
        /// The end of this process, not power loss: `synchronous=NORMAL`. After a power cut the
        /// last commits may be gone; the file stays consistent.
        case process
    }

    /// How opening treats a file that has several names (hard links).
    ///
    /// SQLite finds a log or journal by the name that the file was opened under. What one program
    /// writes under one name, another one under the other does not see, and may undo or lose.
    public enum HardLinks: Sendable, Hashable {
        /// Opens it and tells ``Configuration/logger``: backup programs link files that are in use.
        case told
        /// Throws `.readOnly`, unless it is opened for reading only.
        case refused
    }

    /// How many concurrent writes share one transaction, and so one fsync.
    ///
    /// Each keeps its own success: a body that throws is undone alone. Who was undone with the
    /// others' transaction, because SQLite ended it or its commit failed, is told so. A write that
    /// nobody waits behind is committed at once.
    public struct GroupCommit: Sendable, Hashable {
        /// Most bodies in one transaction; 1 commits each write by itself.
        public var writeCountMax: Int
        /// How long a transaction may be open before it takes no further body; the last one that it
        /// took may run for longer, and those before it wait for it.
        public var durationMax: Duration

        /// - Parameters:
        ///   - writeCountMax: Most bodies in one transaction.
        ///   - durationMax: How long a transaction may be open before it takes no further body.
        public init(writeCountMax: Int = 128, durationMax: Duration = .milliseconds(20)) {
            self.writeCountMax = writeCountMax
            self.durationMax = durationMax
        }

        /// Each write is committed by itself.
        public static let off = Self(writeCountMax: 1)
    }

    /// The file's cipher settings; `nil` finds those of an existing file by its first page's MAC
    /// and takes `Engine.capabilities.defaultProfile` for a new one.
    public var profile: CipherProfile?

    /// The journal mode; an existing file in another mode is converted.
    public var journalMode = JournalMode.wal

    /// What a returned write has survived; power loss unless you say otherwise.
    public var durability = Durability.power

    /// How long to wait for another connection's or process's lock before `.busy`.
    public var busyTimeout: Duration = .seconds(5)

    /// How to treat a file that has several names; see ``HardLinks``. Looked at when
    /// the file is opened. `rekey` always refuses one.
    public var hardLinks = HardLinks.told

    /// The VFS that the engine reaches the file through; `nil` for its own.
    ///
    /// It has to be registered before, and to show the same files under the same paths as the
    /// system does: Coffer asks the system what is there. `sqlite3_vfs_register` registers one.
    public var vfs: String?

    /// Most connections that a store reads with at once; more reads wait in line.
    ///
    /// From 1 to 256; each has a descriptor or three and its share of the cache.
    public var readerCountMax = 4 {
        didSet { readerCountMax = min(max(1, readerCountMax), 256) }
    }

    /// How writes that wait together share one commit; see ``GroupCommit``.
    public var groupCommit = GroupCommit()

    /// How long a read waits for a free connection, and `rekey` and `close` for running work,
    /// before `.busy`.
    public var waitTimeout: Duration = .seconds(30)

    /// Pages of write-ahead log from which a store moves them into the main file, beside the
    /// writes, and again whenever as many are new; at least 1.
    ///
    /// One write then waits while what was written meanwhile is moved too, fewer pages than these,
    /// and the log starts anew.
    public var checkpointPageCount = 1000 {
        didSet { checkpointPageCount = max(1, checkpointPageCount) }
    }

    /// Bytes of write-ahead log from which a write waits for a checkpoint, and this one for the
    /// reads that run: once for each that keeps the log, and for 50 ms at most.
    ///
    /// Below it no write waits for reads, see ``checkpointPageCount``. Beside a longer read the log
    /// grows beyond it, until ``snapshotAgeMax`` or ``snapshotWALByteCountMax``; the file is cut
    /// again when the read has gone. Beside a read of another process nothing bounds it: see
    /// ``CheckpointStatistics/isKeptByOtherProcess``.
    public var walByteCountMax = 64 << 20

    /// How old the snapshot of a read may get while it keeps the log above ``walByteCountMax``;
    /// then its next verb throws `.snapshotExpired`.
    public var snapshotAgeMax: Duration = .seconds(600)

    /// Bytes of write-ahead log at which the reads that keep it have to end, whatever their age:
    /// their next verb throws `.snapshotExpired`. 1 GiB; at least ``walByteCountMax``.
    ///
    /// Writes have waited for these reads before. Where only short reads that overlap keep the log,
    /// one write waits for them here, for a second at most.
    public var snapshotWALByteCountMax = 1 << 30

    /// How often a store asks whether another process has committed, as long as somebody observes
    /// it: so late can such a commit be noticed. `nil` for never; at least 1 ms.
    ///
    /// It is one read of shared memory (a few µs), or with a rollback journal of the file's header.
    /// Without observers there is neither a timer nor a thread.
    public var foreignCommitInterval: Duration? = .seconds(1) {
        didSet { foreignCommitInterval = foreignCommitInterval.map { max($0, .milliseconds(1)) } }
    }

    /// Bytes of decrypted pages kept in memory, shared equally by all connections of a store; at
    /// least 256 KiB for each of them.
    ///
    /// A ceiling, not a reservation: a cache never holds more than the file has. A page that is
    /// not in the cache costs about 11 µs (SQLCipher 3) or 15 µs (SQLCipher 4) to decrypt. Many
    /// stores get less, so that all of them keep to ``Store/processCacheByteCountMax``.
    public var cacheByteCountMax = 256 << 20 {
        didSet { cacheByteCountMax = max(0, cacheByteCountMax) }
    }

    /// What the stores of the process share.
    var cacheBudget = PageCacheBudget.shared

    /// Where asynchronous bodies run; those of the process.
    var threads = WorkThreads.shared

    /// Most compiled statements kept by each connection, least recently used out first.
    public var statementCountMax = 64

    /// Runs on every connection as soon as it is open: registers functions, sets limits.
    ///
    /// A store opens several connections, and each anew after a change of the key, so this is the
    /// place for what a connection forgets when it closes. An error it throws is the error of
    /// opening.
    public var prepare: (@Sendable (Connection) throws -> Void)?

    /// Names that full-text tables (FTS3, FTS4) may use for `coffer` in `tokenize=coffer name`.
    ///
    /// For files whose tables say `tokenize=fmdb` or `tokenize=fmdb name`: give `["fmdb"]`. The
    /// argument names a tokenizer of `Connection.register(tokenizer:named:)`, and without one the
    /// module's own name does. Names of the engine's own tokenizers are replaced.
    public var tokenizerModules: [String] = []

    /// Where events go; never with a key, a value or an SQL text.
    ///
    /// A store tells what an operator wants to know later, with its `path`. What went wrong is told
    /// by the `code` of its ``StoreError``. A read or write that ends well tells nothing, nor does
    /// one whose error concerns its caller alone. A handler must not use the store: a write may
    /// wait for it.
    ///
    /// | Level | Event | Metadata |
    /// |---|---|---|
    /// | debug | store opened | `profile`, `journalMode`, `derivation` of the key |
    /// | debug | store closed, suspended, resumed | |
    /// | info | change of the key begins | |
    /// | notice | the key was changed | `duration` |
    /// | warning | the main file has the old key until a checkpoint | `pages`, `code` |
    /// | notice | store reopened with another key | |
    /// | notice | SQLCipher 3 is old, once in a process | |
    /// | warning | memory of keys is not locked, once in a process | |
    /// | warning | the file has several names, when it is opened | `count` |
    /// | warning | readers keep the write-ahead log above its bound | `pages`, `pagesMax` |
    /// | warning | another process keeps the write-ahead log above its bound | the same |
    /// | warning | snapshots were ended for the write-ahead log | `count`, `age` |
    /// | warning | checkpoint failed | `code`, `resultCode` |
    /// | warning | commit failed | `code`, `resultCode`; `count` of the writes in it |
    /// | warning | writes were undone with another one | the same, of that one |
    /// | error | the key was not changed, or nobody knows | `code`, `resultCode` |
    /// | error | another process has changed the key | |
    /// | error | damage found, by a read or write | `pages` if known, `code`, `resultCode` |
    /// | error | verification found damage | `pages` |
    public var logger: Logger?

    /// Tells the store's metrics from those of other stores: the value of their dimension
    /// `store`. `nil` for the name of the file, without its folder; empty for no dimension.
    ///
    /// Backends keep a series for each value, and show it to whoever reads them. Where file names
    /// are many, or name persons, give all such stores one label; their counters and timers then
    /// add up, and their gauges have the last one's figure.
    ///
    /// | Metric | Tells |
    /// |---|---|
    /// | `coffer.key.derivation` | how long deriving the key took |
    /// | `coffer.read`, `coffer.read.wait` | how long reads took, and before waited in line |
    /// | `coffer.write.wait`, `coffer.write.depth` | how long writes waited, how many do |
    /// | `coffer.write.undone` | bodies that were undone |
    /// | `coffer.commit`, `coffer.commit.bodies` | how long commits took, of how many bodies |
    /// | `coffer.cache.hits`, `coffer.cache.misses` | pages found decrypted, and those not |
    /// | `coffer.checkpoint`, `coffer.log.pages` | how long checkpoints took, the log's size |
    ///
    /// A program has to bootstrap swift-metrics before it opens the store.
    public var metricsLabel: String?

    /// The defaults.
    public init() {}

    /// The same with a journal mode that SQLite knows.
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

/// What to do about the file's existence.
public enum OpenMode: Sendable {
    /// Opens the file, and makes an encrypted one if there is none. An existing empty file is
    /// `.truncated`, never a fresh store.
    case createIfMissing
    /// Opens the file; `.notFound` if there is none.
    case mustExist
    /// Opens the file for reading only; `.notFound` if there is none.
    ///
    /// Its content stays as it is, and nothing that was not there stays behind beside it. What a
    /// crash has left unfinished is undone first, as whoever opens the file has to: a rollback
    /// journal is played back, which takes the right to write. Without that right it is
    /// `.readOnly`, and so is a log that this user cannot read.
    ///
    /// A file in WAL mode is readable without any right to write as well, if it has no log: then
    /// it is read without locks, and `.busy` is thrown once somebody has changed it.
    case readOnly
}
