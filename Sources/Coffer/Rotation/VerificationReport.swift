/// What `verify` found out about a store.
public struct VerificationReport: Sendable, Equatable {
    /// Pages of the main file whose authentication was checked, free pages among them.
    public internal(set) var pageCount = 0
    /// Committed frames of the write-ahead log whose authentication was checked.
    public internal(set) var frameCount = 0
    /// Numbers, from 1, of the pages of the main file that fail authentication.
    public internal(set) var damagedPages: [Int] = []
    /// Numbers of the pages whose frames in the write-ahead log fail, as far as the frame tells;
    /// 0 where it does not.
    public internal(set) var damagedFramePages: [Int] = []
    /// Bytes behind the last whole page of the main file.
    public internal(set) var trailingByteCount = 0
    /// What SQLite's `integrity_check` and `foreign_key_check` say; empty if all is well. Names
    /// tables, indexes and row ids, never a value.
    public internal(set) var problems: [String] = []

    /// Whether every page is authentic and the structure sound.
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
