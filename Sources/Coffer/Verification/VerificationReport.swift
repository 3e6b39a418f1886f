/// The result of `verify`.
public struct VerificationReport: Sendable, Equatable {
    /// Pages of the main file whose authentication was checked, including free pages.
    public internal(set) var pageCount = 0
    /// All pages of the main file: as many as were checked, unless a sample was requested.
    public internal(set) var pageCountTotal = 0
    /// Committed frames of the WAL whose authentication was checked.
    public internal(set) var frameCount = 0
    /// Pages whose newest content is only in the WAL.
    ///
    /// The main file's version of these pages is stale: older, under the old key after a rekey, or
    /// torn by a power loss in a checkpoint. That is not damage; their frames are checked instead.
    /// A number above 0 is usual while a store in WAL mode is in use.
    public internal(set) var stalePageCount = 0
    /// Whether the WAL holds pages that a checkpoint still has to move into the main file.
    ///
    /// Until then the main file is not a copy of the store without its `-wal` file. After a rekey,
    /// the main file alone still opens with the old key. A checkpoint runs when the last connection
    /// closes.
    public var isCheckpointOwed: Bool { stalePageCount > 0 }
    /// Pages of the main file that fail authentication and are not stale, by number.
    public internal(set) var damagedPages: [DamagedPage] = []
    /// Pages whose frames in the WAL fail, in the order of the WAL. The last one may be from a
    /// frame that is no longer counted as committed because it is damaged.
    public internal(set) var damagedFramePages: [DamagedPage] = []
    /// Bytes of the last page of the main file if that page is cut short and not stale.
    public internal(set) var trailingByteCount = 0
    /// Bytes of the main file behind the end of the database. Nothing reads them, so they are not
    /// damage. But while they are there, the key cannot be changed in place. A backup leaves them
    /// out.
    public internal(set) var surplusByteCount = 0
    /// Whether SQLite's `integrity_check` and `foreign_key_check` ran to their end; not for a
    /// sample.
    public internal(set) var isStructureChecked = false
    /// Why SQLite could not check the structure, although a check was requested and no page is
    /// damaged: the schema needs a collation or a function that this program has not registered.
    public internal(set) var structureFailure: String?
    /// The findings of SQLite's `integrity_check` and `foreign_key_check`, whether the file lacks
    /// pages at its end, and whether damage cut off commits at the end of the WAL. Empty if there
    /// are none; SQLite's checks may not have run. Names tables, indexes and row ids, never a
    /// value.
    public internal(set) var problems: [String] = []

    /// Whether the check found nothing wrong.
    ///
    /// After ``VerificationScope/everything`` it means that every page is authentic and, if
    /// ``isStructureChecked``, that the structure is sound.
    ///
    /// After a sample it means that the drawn pages and the WAL are authentic and the file ends
    /// with a whole page. The ratio of ``pageCount`` to ``pageCountTotal`` shows how much that is
    /// worth. In a store with *d* damaged pages, a sample of a fraction *p* misses all of them with
    /// a probability of about (1 - *p*)^*d*.
    public var isGood: Bool {
        damagedPages.isEmpty && damagedFramePages.isEmpty && problems.isEmpty
            && trailingByteCount == 0
    }
}

/// The progress of a long run.
public struct VerificationProgress: Sendable {
    /// Pages checked so far.
    public let pageCount: Int
    /// The number of pages to check, as known when the run began.
    public let pageCountTotal: Int
}
