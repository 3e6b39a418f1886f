/// Whether a handle has what an owner registers with SQLite, such as a function.
private final class Registration<Owner> {
    var isDone = false
}

extension Handle {
    /// Calls `register` for an owner, unless an earlier call for it has succeeded on this handle.
    ///
    /// - Throws: The error of `register`. The next call tries again.
    func registerOnce<Owner>(
        _ owner: Owner.Type, _ register: () throws(StoreError) -> Void
    ) throws(StoreError) {
        let registration = attachment { Registration<Owner>() }
        guard !registration.isDone else { return }
        try register()
        registration.isDone = true
    }
}
