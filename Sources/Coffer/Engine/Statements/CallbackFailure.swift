import CSQLCipher

/// Whether the engine is calling code of the program, and how that code failed.
final class CallbackState {
    /// Set while code of the program runs in the middle of a statement.
    var isRunning = false
    /// The error that such code threw; becomes the cause of the statement's error.
    var error: (any Error)?
}

/// An error of Coffer in code that the engine called: the statement fails with it.
struct CallbackFailure: Error {
    let error: StoreError

    /// Whether `error` may be the cause of the engine's result code: true for `SQLITE_ERROR` and
    /// `SQLITE_CORRUPT`. `SQLITE_BUSY`, say, has another cause.
    func explains(_ code: Int32) -> Bool {
        [SQLITE_ERROR, SQLITE_CORRUPT].contains(code & 0xff)
    }
}

extension StoreError {
    func failStatement(of handle: Handle?) -> Int32 {
        handle?.callback.error = CallbackFailure(error: self)
        return code == .damaged ? SQLITE_CORRUPT : SQLITE_ERROR
    }
}
