import Synchronization

/// The keyring of an open store in one epoch: its file, and its root while the store keeps it.
final class OpenKeyring: Sendable {
    private struct State {
        /// `nil` while the root is not kept.
        var root: KeyBox<RootKey>?
        /// The newest content that this store has read or written.
        var area: KeyringArea
    }

    /// The state that the keyrings of all epochs of one open store have in common.
    private final class Shared: Sendable {
        let state: Mutex<State>

        init(_ state: consuming State) { self.state = Mutex(state) }
    }

    let file: KeyringFile
    /// The slot that opened the store.
    let slotID: UInt16
    /// The epoch of the file under the store's key.
    let epoch: UInt32
    /// How long to wait for another process that changes the keyring.
    let timeout: Duration
    /// The most memory that a derivation may take, in bytes.
    let memoryMax: Int
    private let shared: Shared

    init(
        _ file: KeyringFile, area: KeyringArea, slotID: UInt16, epoch: UInt32,
        root: KeyBox<RootKey>?,
        _ configuration: Configuration
    ) {
        self.file = file
        self.slotID = slotID
        self.epoch = epoch
        timeout = configuration.waitTimeout
        memoryMax = configuration.maximumKeyMemoryByteCount
        shared = Shared(State(root: root, area: area))
    }

    private init(_ other: OpenKeyring, epoch: UInt32) {
        (file, slotID, timeout) = (other.file, other.slotID, other.timeout)
        (memoryMax, shared) = (other.memoryMax, other.shared)
        self.epoch = epoch
    }

    /// The same keyring, for the store under the key of another epoch. Both share the root.
    func inEpoch(_ epoch: UInt32) -> OpenKeyring { OpenKeyring(self, epoch: epoch) }

    /// The root, for as long as the caller holds the box.
    ///
    /// - Throws: `.misuse` while it is not kept.
    func root() throws(StoreError) -> KeyBox<RootKey> {
        guard let root = shared.state.withLock({ $0.root }) else {
            throw StoreError(
                .misuse, "the store does not keep the root key of its keyring",
                hint: "Call keys.unlock with a credential, and keys.lock afterwards.")
        }
        return root
    }

    /// Reads the keyring's file, and checks that it is this root's.
    ///
    /// - Throws: `.keyringMissing`, `.keyringDamaged`; `.keyringMismatch` for another root;
    ///   `.misuse` while the root is not kept.
    func current() throws(StoreError) -> KeyringArea { try read().area }

    /// The content of the file, and whether both of its areas have it.
    ///
    /// - Throws: As `current()`.
    func read() throws(StoreError) -> (area: KeyringArea, isWhole: Bool) {
        let root = try root()
        guard let areas = try file.areas() else { throw StoreError.noKeyring(file) }
        guard let area = areas.authentic(under: root.key) else {
            throw StoreError.otherRoot(file)
        }
        shared.state.withLock { $0.area = area }
        return (area, areas.areEqual)
    }

    /// The content that this store has read or written last.
    private var known: KeyringArea { shared.state.withLock { $0.area } }

    /// The content of the file. Falls back to the content that this store has read or written last,
    /// if it cannot read or authenticate the file.
    ///
    /// - Throws: `.tooManyFiles`, `.needsNewerProgram`.
    func newest() throws(StoreError) -> KeyringArea {
        do throws(StoreError) {
            return try current()
        } catch  where Self.replaceable.contains(error.code) {
            return known
        }
    }

    /// The root, and the content to look for the epoch of a file that another process has rotated.
    /// Without a readable keyring, that is the content that this store has read or written last.
    ///
    /// - Throws: `.keyringMismatch` for a keyring with another root; `.misuse` while the root is
    ///   not kept; `.tooManyFiles`, `.needsNewerProgram`.
    func forFollowing() throws(StoreError) -> (root: KeyBox<RootKey>, content: KeyringContent) {
        let root = try root()
        do throws(StoreError) {
            return (root, try current().content)
        } catch  where [.keyringMissing, .keyringDamaged, .io].contains(error.code) {
            return (root, known.content)
        }
    }

    private static let replaceable: [StoreError.Code] = [
        .keyringMissing, .keyringDamaged, .keyringMismatch, .tooCostly, .misuse, .io,
    ]

    /// Changes the keyring under its lock.
    ///
    /// - Throws: As `KeyringLock`, and what `change` throws.
    func change<T>(
        timeout: Duration? = nil,
        _ change: (inout KeyringContent, borrowing RootKey) throws(StoreError) -> T
    ) throws(StoreError) -> T {
        let root = try root()
        let lock = try KeyringLock(file, timeout: timeout ?? self.timeout)
        let (area, result) = try lock.change(under: root.key) { (content) throws(StoreError) in
            try change(&content, root.key)
        }
        shared.state.withLock { $0.area = area }
        return result
    }

    /// Keeps the root again.
    ///
    /// - Throws: As `KeyringArea.unlocked`; `.keyringMismatch` if the keyring is now another's.
    func unlock(_ credential: borrowing KeyCredential) throws(StoreError) {
        guard let unlocked = try file.unlocked(by: credential, memoryMax: memoryMax) else {
            throw StoreError.noKeyring(file)
        }
        let area = unlocked.area
        // Unlocking has compared the id in the keyring with its root.
        guard area.content.rootID == known.content.rootID else {
            throw StoreError.otherRoot(file)
        }
        let root = KeyBox(unlocked.root.copy())
        shared.state.withLock { state in
            state.root = root
            state.area = area
        }
    }

    /// Wipes the root as soon as no operation uses it.
    func forgetRoot() {
        shared.state.withLock { $0.root = nil }
    }
}
