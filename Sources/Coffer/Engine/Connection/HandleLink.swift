/// The reference from an object that the engine has a pointer to, such as a function, to its
/// handle.
///
/// It is not a weak reference. Counting the references to an object with weak ones takes some
/// eighty instructions each time, and each read counts those of its handle.
final class HandleLink {
    /// Proof that it never dangles: only the handle sets it. The handle clears it when it closes,
    /// and at the latest in its deinit, with the mutex of the database. The engine calls functions
    /// with that mutex, if the database has one. Otherwise database, handle and link belong to one
    /// thread at a time.
    unowned(unsafe) var handle: Handle?
}
