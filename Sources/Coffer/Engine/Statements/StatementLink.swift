/// What a connection has of a statement on its list: the statement, until it ends.
///
/// It is not a weak reference, since counting the references of what has weak ones takes some
/// eighty instructions each time, and a lookup by key counts those of its statement.
final class StatementLink {
    /// Proof that it never dangles: the statement alone sets it, and ends it when it is finalized
    /// or in the first line of its deinit; until then all three are of one thread at a time.
    unowned(unsafe) var statement: Statement?
}
