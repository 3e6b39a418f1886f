/// Two functions by which a store sweeps expired entries without knowing their tables.
struct ExpiryWork: Sendable {
    /// Removes so many expired entries at most, in the connection's transaction, and returns how
    /// many it removed.
    let sweep: @Sendable (_ connection: Connection, _ maximumCount: Int) throws -> Int
    /// How long until the next entry ends, as the connection's transaction sees it; `nil` if none
    /// does.
    let timeToNext: @Sendable (_ connection: Connection) throws -> Duration?
}
