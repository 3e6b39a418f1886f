/// Two functions by which a store sweeps expired entries without knowing their tables.
struct ExpiryWork: Sendable {
    /// Removes so many expired entries at most, in the connection's transaction, and then some
    /// content that no entry has. Returns whether more may be left.
    let sweep: @Sendable (_ connection: Connection, _ maximumCount: Int) throws -> Bool
    /// How long until there is something to sweep, as the connection's transaction sees it; `nil`
    /// if nothing will expire.
    let timeToNext: @Sendable (_ connection: Connection) throws -> Duration?
}
