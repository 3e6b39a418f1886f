/// The reference from a connection's list to a statement, until the statement ends.
///
/// It is not a weak reference. Counting the references to an object with weak ones takes some
/// eighty instructions each time, and a lookup by key counts its statement's references.
final class StatementLink {
    /// Proof that it never dangles: only the statement sets it. The statement clears it when it is
    /// finalized or at the start of its deinit. Until then connection, link and statement belong to
    /// one thread at a time.
    unowned(unsafe) var statement: Statement?
}
