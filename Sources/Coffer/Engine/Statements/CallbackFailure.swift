import CSQLCipher

/// An error of Coffer in code that the engine called: the statement fails with it.
struct CallbackFailure: Error {
    let error: StoreError

    /// Whether that code may have caused the engine's code; `SQLITE_BUSY`, say, has another cause.
    func explains(_ code: Int32) -> Bool {
        [SQLITE_ERROR, SQLITE_CORRUPT].contains(code & 0xff)
    }
}

extension StoreError {
    func failStatement(of handle: Handle?) -> Int32 {
        handle?.callbackError = CallbackFailure(error: self)
        return code == .damaged ? SQLITE_CORRUPT : SQLITE_ERROR
    }
}
