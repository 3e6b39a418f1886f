/// What a copy consists of, after it was checked.
public struct CopyReport: Sendable, Equatable {
    /// Tables with rows of their own: those of virtual tables count, SQLite's own do not.
    public let tableCount: Int
    /// Rows of these tables.
    public let rowCount: Int
    /// Pages of the copy.
    public let pageCount: Int
    /// The cipher settings of the copy; `nil` for a plaintext database.
    public let profile: CipherProfile?

    init(_ result: CopyCheck.Result, profile: CipherProfile?) {
        tableCount = result.tableCount
        rowCount = result.rowCount
        pageCount = result.pageCount
        self.profile = profile
    }
}
