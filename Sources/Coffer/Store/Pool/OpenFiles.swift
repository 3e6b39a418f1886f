import Synchronization

/// The files that stores of this process have open, by device and inode.
///
/// Two stores on one file would each believe that they alone write it.
enum OpenFiles {
    private static let identities = Mutex<Set<FileLocation.Identity>>([])

    /// One store's right to its file, until it is released or dies.
    final class Claim: Sendable {
        private let identity: Mutex<FileLocation.Identity?>

        /// - Throws: `.alreadyOpen` if a store has the file.
        init(_ identity: FileLocation.Identity, path: String) throws(StoreError) {
            guard OpenFiles.identities.withLock({ $0.insert(identity).inserted }) else {
                throw OpenFiles.alreadyOpen(path)
            }
            self.identity = Mutex(identity)
        }

        deinit { release() }

        /// Safe to call twice: a later store may have claimed the file meanwhile.
        func release() {
            let held = identity.withLock { identity in
                defer { identity = nil }
                return identity
            }
            if let held { _ = OpenFiles.identities.withLock { $0.remove(held) } }
        }
    }

    /// - Throws: `.alreadyOpen` if a store has the file.
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
