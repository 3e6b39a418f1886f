/// The content of a copy that was checked.
public struct CopyReport: Sendable, Equatable {
    /// Tables that store rows: a virtual table's shadow tables count, SQLite's internal tables do
    /// not.
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
