import ArgumentParser
import Coffer
import Foundation

/// Which keys a rotation replaces, and which it leaves alone.
struct DueOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Leave a key alone that is younger, such as 90d, 12h or 30m; with --root, a root key. "
                + "The secret is only needed if a key is older.", valueName: "age"),
        transform: TimeSpan.init)
    var olderThan: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "With --root: leave a root key alone that is younger. --older-than is then the age of "
                + "a data key, which is replaced alone.", valueName: "age"),
        transform: TimeSpan.init)
    var rootOlderThan: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "Leave a data key alone whose epoch is later, so that a repeated command replaces it "
                + "once.", valueName: "number"))
    var fromEpoch: Int?

    @Option(
        help: ArgumentHelp(
            "With --root: leave a root key alone that has another id.", valueName: "id"))
    var fromRoot: String?

    /// Every key is due.
    static var always: DueOptions {
        var options = DueOptions()
        (options.olderThan, options.rootOlderThan) = (nil, nil)
        (options.fromEpoch, options.fromRoot) = (nil, nil)
        return options
    }

    /// The keys that a rotation replaces.
    enum Work {
        /// The data key.
        case key
        /// The root key, and the data key with it.
        case root
    }

    /// The options for a run of the tool that replaces no other key than those of this keyring.
    func arguments(from keyring: Keyring, isNewRoot: Bool) -> [String] {
        (olderThan.map { ["--older-than=\($0)"] } ?? [])
            + (rootOlderThan.map { ["--root-older-than=\($0)"] } ?? [])
            + ["--from-epoch=\(keyring.epoch)"]
            + (isNewRoot ? ["--from-root=\(keyring.rootID)"] : [])
    }

    /// Whether the answer must be authenticated: another run may have done the work.
    var isRepeated: Bool { fromEpoch != nil || fromRoot != nil }

    /// Decides by the keyring of a store which keys to replace; `nil` leaves the store alone.
    ///
    /// A key from the future counts as old: its date is wrong, or forged. A replacement of the root
    /// that has begun is always finished. A slot that is to be dropped and is there makes the root
    /// due, whatever its age.
    ///
    /// - Parameter newRoot: The slots to drop with the root; `nil` to keep the root.
    func work(
        for keyring: Keyring, newRoot: RotationRun.NewRoot?, now: Date = .now
    ) -> Work? {
        guard let newRoot else {
            guard !keyring.isReplacingRoot else { return .key }
            return isKeyDue(keyring, now) ? .key : nil
        }
        guard !keyring.isReplacingRoot, !newRoot.drops(anyOf: keyring) else { return .root }
        guard !newRoot.isRevocation else { return nil }
        let isRootOld = isOld(keyring.rootMade, rootOlderThan ?? olderThan, now)
        if isFromRoot(keyring), isRootOld { return .root }
        return olderThan != nil && isKeyDue(keyring, now) ? .key : nil
    }

    private func isKeyDue(_ keyring: Keyring, _ now: Date) -> Bool {
        if let fromEpoch, keyring.epoch > fromEpoch { return false }
        return isOld(keyring.keyMade, olderThan, now)
    }

    private func isFromRoot(_ keyring: Keyring) -> Bool {
        fromRoot.map { $0 == keyring.rootID } ?? true
    }

    /// Whether a key is as old as the limit, or there is none.
    private func isOld(_ made: Date, _ limit: TimeSpan?, _ now: Date) -> Bool {
        guard let limit else { return true }
        let age = now.timeIntervalSince(made)
        return age >= limit.seconds || age < -86_400
    }
}
