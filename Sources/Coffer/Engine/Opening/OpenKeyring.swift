import Synchronization

/// The keyring of an open store in one epoch: its file, and its root while the store keeps it.
///
/// Another process may replace the root. While the store keeps the root, it also keeps the secret
/// of its slot, and finds the new root by it.
final class OpenKeyring: Sendable {
    private struct State {
        /// `nil` while the root is not kept.
        var root: KeyBox<RootKey>?
        /// The secret of the slot that opened the store; `nil` while the root is not kept.
        var secret: KeyBox<SlotSecret>?
        /// The newest content that this store has read or written.
        var area: KeyringArea
    }

    /// The state that the keyrings of all epochs of one open store have in common.
    private final class Shared: Sendable {
        let state: Mutex<State>

        init(_ state: consuming State) {
            self.state = Mutex(state)
        }
    }

    let file: KeyringFile
    /// The slot that opened the store.
    let slotID: UInt16
    /// The epoch of the file under the store's key.
    let epoch: UInt32
    /// The id of the root that the store's key comes from. The keyring may have another root by
    /// now.
    let rootID: [UInt8]
    /// How long to wait for another process that changes the keyring.
    let timeout: Duration
    /// The most memory that a derivation may take, in bytes.
    let memoryMax: Int
    private let shared: Shared

    /// - Parameter rootID: The id of the root that the key of the file comes from.
    init(
        _ file: KeyringFile, _ unlocked: borrowing UnlockedKeyring, epoch: UInt32, rootID: [UInt8],
        _ configuration: Configuration
    ) {
        self.file = file
        slotID = unlocked.slotID
        (self.epoch, self.rootID) = (epoch, rootID)
        timeout = configuration.waitTimeout
        memoryMax = configuration.maximumKeyMemoryByteCount
        shared = Shared(
            State(
                root: KeyBox(unlocked.root.copy()), secret: KeyBox(unlocked.secret.copy()),
                area: unlocked.area))
    }

    private init(_ other: OpenKeyring, epoch: UInt32, rootID: [UInt8]) {
        (file, slotID, timeout) = (other.file, other.slotID, other.timeout)
        (memoryMax, shared) = (other.memoryMax, other.shared)
        (self.epoch, self.rootID) = (epoch, rootID)
    }

    /// The same keyring, for the store under another key. Both share the root.
    func inEpoch(_ epoch: UInt32, rootID: [UInt8]) -> OpenKeyring {
        OpenKeyring(self, epoch: epoch, rootID: rootID)
    }

    /// The root, for as long as the caller holds the box.
    ///
    /// - Throws: `.misuse` while it is not kept.
    func root() throws(StoreError) -> KeyBox<RootKey> {
        guard let root = shared.state.withLock({ $0.root }) else { throw notKept }
        return root
    }

    private var notKept: StoreError {
        StoreError(
            .misuse, "the store does not keep the root key of its keyring",
            hint: "Call keys.unlock with a credential, and keys.lock afterwards.")
    }

    /// Reads the keyring's file, and checks that it is this root's. If another process has replaced
    /// the root, takes the new one from the store's slot.
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
        if let area = areas.authentic(under: root.key) {
            shared.state.withLock { $0.area = area }
            return (area, areas.areEqual)
        }
        let (area, next) = try nextRoot(in: areas)
        let kind = shared.state.withLock { $0.secret?.key.kind }
        guard isProven(next.key, of: area, by: kind) else { throw StoreError.otherRoot(file) }
        adopt(next, of: area)
        return (area, areas.areEqual)
    }

    /// The root that another process has given the keyring.
    ///
    /// - Throws: `.keyringMismatch` if the store's slot does not have it: the slot was dropped or
    ///   changed, or the keyring is another store's.
    private func nextRoot(
        in areas: KeyringAreas
    ) throws(StoreError) -> (KeyringArea, KeyBox<RootKey>) {
        guard let secret = shared.state.withLock({ $0.secret }) else {
            throw StoreError.otherRoot(file)
        }
        for area in areas.current where isLater(area) {
            do throws(StoreError) {
                return (area, KeyBox(try area.unlocked(by: secret.key).root.copy()))
            } catch {
                // The other area of the same generation may open.
                continue
            }
        }
        throw StoreError.otherRoot(file)
    }

    /// Whether the keyring may be a later one of this store. A replacement of the root takes an
    /// epoch that the store never had. So an earlier keyring that somebody has put back is not
    /// taken for one, and the present root is kept.
    private func isLater(_ area: KeyringArea) -> Bool {
        let known = known.content
        return area.content.id == known.id && area.content.epoch > known.highestEpoch
    }

    /// Whether an owner of the present root, or of the slot's secret, has made this one.
    ///
    /// Everybody can seal a root to the public key of a recipient. A rotation would then give the
    /// store a key that a stranger knows. So a recipient also needs the former root in the keyring,
    /// or a file that opens under the new one.
    private func isProven(
        _ next: borrowing RootKey, of area: KeyringArea, by kind: KeyringSlot.Kind?
    ) -> Bool {
        guard kind == .recipient else { return true }
        let known = known.content
        guard let former = try? area.content.formerRoot(under: next) else { return false }
        return former.id(for: known.id) == known.rootID
    }

    /// Makes a root that another process has given the keyring that of the store.
    func adopt(_ root: KeyBox<RootKey>, of area: KeyringArea) {
        shared.state.withLock { state in
            state.area = area
            // Whoever has locked the store meanwhile wants it to keep no root.
            if state.root != nil { state.root = root }
        }
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
    /// Another root counts only once it has opened the file: then it is adopted.
    ///
    /// - Throws: `.keyringMismatch` for a keyring whose root the store's slot does not have;
    ///   `.misuse` while the root is not kept; `.tooManyFiles`, `.needsNewerProgram`.
    func forFollowing() throws(StoreError) -> (root: KeyBox<RootKey>, area: KeyringArea) {
        let root = try root()
        do throws(StoreError) {
            guard let areas = try file.areas() else { return (root, known) }
            if let area = areas.authentic(under: root.key) { return (root, area) }
            let (area, next) = try nextRoot(in: areas)
            return (next, area)
        } catch  where [.keyringDamaged, .io].contains(error.code) {
            return (root, known)
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
        let lock = try KeyringLock(file, timeout: timeout ?? self.timeout)
        // Under the lock, because another process may have replaced the root.
        _ = try current()
        let root = try root()
        let (area, result) = try lock.change(under: root.key) { (content) throws(StoreError) in
            try change(&content, root.key)
        }
        shared.state.withLock { $0.area = area }
        return result
    }

    /// Replaces the root of the keyring.
    ///
    /// - Parameter change: Makes the content under the new root from the present one.
    /// - Throws: As `KeyringLock`, and what `change` throws.
    func replaceRoot(
        by new: borrowing RootKey,
        _ change: (inout KeyringContent, borrowing RootKey) throws(StoreError) -> Void
    ) throws(StoreError) {
        let lock = try KeyringLock(file, timeout: timeout)
        _ = try current()
        let root = try root()
        let (area, _) = try lock.change(from: root.key, to: new) { (content) throws(StoreError) in
            try change(&content, root.key)
        }
        adopt(KeyBox(new.copy()), of: area)
    }

    /// The secret of the store's slot.
    ///
    /// - Throws: `.misuse` while the root is not kept.
    func secret() throws(StoreError) -> KeyBox<SlotSecret> {
        guard let secret = shared.state.withLock({ $0.secret }) else { throw notKept }
        return secret
    }

    /// Keeps the new secret of the store's slot, after a change of the slot.
    func keep(_ secret: consuming SlotSecret) {
        let box = KeyBox(secret)
        shared.state.withLock { state in
            if state.root != nil { state.secret = box }
        }
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
        let known = known.content
        guard
            area.content.id == known.id,
            area.content.rootID == known.rootID
                || isLater(area) && isProven(unlocked.root, of: area, by: credential.kind)
        else { throw StoreError.otherRoot(file) }
        let root = KeyBox(unlocked.root.copy())
        let secret = KeyBox(unlocked.secret.copy())
        shared.state.withLock { state in
            state.root = root
            state.secret = secret
            state.area = area
        }
    }

    /// Wipes the root as soon as no operation uses it.
    func forgetRoot() {
        shared.state.withLock { state in
            (state.root, state.secret) = (nil, nil)
        }
    }
}
