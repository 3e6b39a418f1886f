extension Error {
    /// The error that an asynchronous verb throws: Swift's `CancellationError` if the caller's task
    /// was cancelled, so that frameworks recognise it.
    var ofTask: any Error {
        Task.isCancelled && (self as? StoreError)?.code == .cancelled ? CancellationError() : self
    }
}
