import Synchronization

/// The files that stores of this process have open, by device and inode.
///
/// Two stores on one file would each assume to be its only writer in this process.
enum OpenFiles {
    private static let identities = Mutex<Set<FileLocation.Identity>>([])

    /// One store's exclusive right to its file, until it is released or deinitialised.
    final class Claim: Sendable {
        private let identity: Mutex<FileLocation.Identity?>

        /// Claims the file.
        ///
        /// - Throws: `.alreadyOpen` if a store of this process has the file.
        init(_ identity: FileLocation.Identity, path: String) throws(StoreError) {
            guard OpenFiles.identities.withLock({ $0.insert(identity).inserted }) else {
                throw OpenFiles.alreadyOpen(path)
            }
            self.identity = Mutex(identity)
        }

        deinit { release() }

        /// Ends the claim, so that another store may have the file. A second call does nothing,
        /// even if a later store has claimed the file in between.
        func release() {
            let held = identity.withLock { identity in
                defer { identity = nil }
                return identity
            }
            if let held { _ = OpenFiles.identities.withLock { $0.remove(held) } }
        }
    }

    /// Does nothing if no store of this process has the file.
    ///
    /// - Throws: `.alreadyOpen` if one has it.
    static func require(_ identity: FileLocation.Identity, isFreeAt path: String) throws(StoreError)
    {
        if identities.withLock({ $0.contains(identity) }) { throw alreadyOpen(path) }
    }

    private static func alreadyOpen(_ path: String) -> StoreError {
        StoreError(
            .alreadyOpen, "this process has a Store on \(path) already",
            hint: "Share one Store; it is Sendable and serves any number of tasks.")
    }
}
