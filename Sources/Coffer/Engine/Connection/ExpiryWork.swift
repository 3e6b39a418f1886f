/// Two functions by which a store sweeps expired entries without knowing their tables.
struct ExpiryWork: Sendable {
    /// Removes so many expired entries at most, in the connection's transaction, and then some
    /// content that no entry has.
    let sweep: @Sendable (_ connection: Connection, _ maximumCount: Int) throws -> Slice
    /// How long until there is something to sweep, as the connection's transaction sees it; `nil`
    /// if nothing will expire.
    let timeToNext: @Sendable (_ connection: Connection) throws -> Duration?

    /// Result of one sweep.
    struct Slice {
        /// Whether more may be left that can be swept.
        let isMoreLeft: Bool
        /// Why a table keeps what has expired; `nil` if none does.
        let failure: StoreError?
    }
}
