import Synchronization

/// The files that stores of this process have open, by device and inode.
///
/// Two stores on one file would each assume to be its only writer in this process. A closed file
/// may be removed, and its inode may be given to another file; so a claim does not outlive the
/// connections of its store.
enum OpenFiles {
    private static let claims = Mutex<[FileLocation.Identity: State]>([:])

    private enum State { case open, closing }

    /// How long to wait for another store to close its connections, which may take a checkpoint.
    static let closingTimeout: Duration = .seconds(5)

    /// One store's exclusive right to its file, until it is released or deinitialised.
    final class Claim: Sendable {
        private let identity: Mutex<FileLocation.Identity?>

        /// Claims the file. Waits up to `timeout` for a store that is closing it.
        ///
        /// - Throws: `.alreadyOpen` if a store of this process has the file.
        init(
            _ identity: FileLocation.Identity, path: String, timeout: Duration = closingTimeout
        ) throws(StoreError) {
            try OpenFiles.wait(for: identity, at: path, timeout) { claims in
                claims[identity] = .open
            }
            self.identity = Mutex(identity)
        }

        deinit { release() }

        /// The claimed file; `nil` when the claim has ended.
        var file: FileLocation.Identity? { identity.withLock { $0 } }

        /// Whether this claim is on the file.
        func isOn(_ identity: FileLocation.Identity) -> Bool {
            self.identity.withLock { $0 == identity }
        }

        /// Makes others wait for the end of the claim instead of failing. Its store closes the file
        /// now.
        func willEnd() {
            identity.withLock { identity in
                if let identity { OpenFiles.claims.withLock { $0[identity] = .closing } }
            }
        }

        /// Ends the claim, so that another store may have the file. A second call does nothing,
        /// even if a later store has claimed the file in between.
        func release() {
            identity.withLock { identity in
                if let identity { OpenFiles.claims.withLock { $0[identity] = nil } }
                identity = nil
            }
        }
    }

    /// Does nothing if no store of this process has the file. Waits for a store that is closing it.
    ///
    /// - Throws: `.alreadyOpen` if one has it.
    static func require(_ identity: FileLocation.Identity, isFreeAt path: String) throws(StoreError)
    {
        try wait(for: identity, at: path, closingTimeout) { _ in }
    }

    /// Waits until no store has the file, and runs `body` before another one can claim it.
    ///
    /// - Throws: `.alreadyOpen` if a store has the file and is not closing it, or has not closed it
    ///   within `timeout`.
    private static func wait(
        for identity: FileLocation.Identity, at path: String, _ timeout: Duration,
        _ body: (inout [FileLocation.Identity: State]) -> Void
    ) throws(StoreError) {
        let deadline = ContinuousClock.now + timeout
        while true {
            let state = claims.withLock { claims in
                let state = claims[identity]
                if state == nil { body(&claims) }
                return state
            }
            guard let state else { return }
            guard state == .closing else {
                throw StoreError(
                    .alreadyOpen, "this process has a Store on \(path) already",
                    hint: "Share one Store; it is Sendable and serves any number of tasks.")
            }
            guard ContinuousClock.now < deadline else {
                throw StoreError(
                    .alreadyOpen, "another Store of this process is still closing \(path)",
                    hint: "Try again when close() has returned.")
            }
            sleepBriefly()
        }
    }
}
