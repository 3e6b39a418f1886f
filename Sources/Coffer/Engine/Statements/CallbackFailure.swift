import CSQLCipher

/// An error of Coffer in code that the engine called: the statement fails with it.
struct CallbackFailure: Error {
    let error: StoreError

    /// Whether the engine's code can be due to it: not busy, say, which came between.
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
