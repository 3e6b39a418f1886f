/// What `verify` found out about a store.
public struct VerificationReport: Sendable, Equatable {
    /// Pages of the main file whose authentication was checked, free pages among them.
    public internal(set) var pageCount = 0
    /// Pages of the main file in all: as many as were checked, unless a sample was asked for.
    public internal(set) var pageCountTotal = 0
    /// Committed frames of the write-ahead log whose authentication was checked.
    public internal(set) var frameCount = 0
    /// Pages whose newest content stands in the write-ahead log alone.
    ///
    /// What the main file holds of them is stale: older, under the old key after a rekey, or torn
    /// by a power loss in a checkpoint. That is not damage; their frames are checked instead. A
    /// number above 0 is usual while a store in WAL mode is in use.
    public internal(set) var stalePageCount = 0
    /// Whether the log holds what a checkpoint has still to move into the main file.
    ///
    /// Until then the main file is no copy of the store without its `-wal` file, and after a rekey
    /// it alone still opens with the old key. A checkpoint runs when the last connection closes.
    public var isCheckpointOwed: Bool { stalePageCount > 0 }
    /// Pages of the main file that fail authentication and are not stale, by number.
    public internal(set) var damagedPages: [DamagedPage] = []
    /// Pages whose frames in the write-ahead log fail, in the order of the log. The last one may
    /// be of a frame that does not count as committed any more, because it is damaged.
    public internal(set) var damagedFramePages: [DamagedPage] = []
    /// Bytes of a page at the end of the main file that is cut short and not stale.
    public internal(set) var trailingByteCount = 0
    /// Bytes of the main file behind the end of the database. Nothing reads them, so they are not
    /// damage, but the key cannot be changed in place as long as they are there. A backup leaves
    /// them out.
    public internal(set) var surplusByteCount = 0
    /// Whether SQLite's `integrity_check` and `foreign_key_check` ran; not for a sample.
    public internal(set) var isStructureChecked = false
    /// Why SQLite could not check the structure, though it was asked to and no page is damaged:
    /// the schema needs a collation or a function that this program has not registered.
    public internal(set) var structureFailure: String?
    /// What SQLite's `integrity_check` and `foreign_key_check` say, and whether damage cut off
    /// commits at the end of the log; empty if all is well, or if they did not run. Names tables,
    /// indexes and row ids, never a value.
    public internal(set) var problems: [String] = []

    /// Whether nothing wrong was found in what was checked.
    ///
    /// After ``VerificationScope/everything`` it means that every page is authentic and the
    /// structure sound, if ``isStructureChecked``. After a sample it means that the drawn pages and
    /// the log are authentic and the file ends with a whole page; ``pageCount`` of
    /// ``pageCountTotal`` tells what that is worth. Of a store with *d* damaged pages, a sample of
    /// a part *p* misses all of them with a chance of about (1 - *p*)^*d*.
    public var isGood: Bool {
        damagedPages.isEmpty && damagedFramePages.isEmpty && problems.isEmpty
            && trailingByteCount == 0
    }
}

/// How far a long run has come.
public struct VerificationProgress: Sendable {
    /// Pages checked so far.
    public let pageCount: Int
    /// Pages to check in all, as known when the run began.
    public let pageCountTotal: Int
}
