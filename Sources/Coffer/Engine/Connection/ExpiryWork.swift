/// How what has expired is removed: the work of whoever stores entries that expire.
struct ExpiryWork: Sendable {
    /// Removes so many expired entries at most, in the connection's transaction, and returns how
    /// many it removed.
    let sweep: @Sendable (_ connection: Connection, _ maximumCount: Int) throws -> Int
    /// How long until the next entry ends, as the connection's transaction sees it; `nil` if none
    /// does.
    let timeToNext: @Sendable (_ connection: Connection) throws -> Duration?
}
