import Coffer
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The needs of a rotation and the obstacles to it, as far as they show without a secret.
struct RotationPlan {
    /// Free bytes of the file system; `nil` if it does not tell.
    let freeByteCount: Int?
    /// On a fast machine.
    let expectedPause: Duration
    /// The first reason why it would fail; `nil` if none is visible.
    private(set) var obstacle: (any Error)?
    /// A new root and the slots that it drops, in words; `nil` if the data key alone is replaced.
    private(set) var text: String?
    /// Reasons why it may fail, which only the secret decides.
    private(set) var warnings: [String] = []

    /// - Parameters:
    ///   - work: `nil` if no key is due: nothing stands in the way then.
    ///   - kind: The kind of the credential that would open the store; `nil` if none is named.
    init(
        _ facts: RotationFacts, _ work: DueOptions.Work?, pause: PauseOption,
        newRoot: RotationRun.NewRoot?, secret kind: KeySlot.Kind?
    ) {
        freeByteCount = facts.file.freeByteCount
        expectedPause = Store.rotationPause(byteCount: facts.file.byteCount)
        guard let work else { return }
        if work == .root, let newRoot {
            let dropped = facts.keyring.slots.filter(newRoot.drops)
            text =
                (["a new root key"] + dropped.map { "without \($0.named)" })
                .joined(separator: ", ")
        }
        do {
            try requireAccess(facts)
            try requireRoom(facts)
            try requirePause(pause)
            if work == .root, let newRoot { try requireSlots(facts, newRoot, kind) }
        } catch {
            obstacle = error
        }
    }

    private func requireAccess(_ facts: RotationFacts) throws {
        let path = facts.file.path
        let folder = URL(filePath: path).deletingLastPathComponent().path
        for needed in [path, path + Keyring.fileSuffix, folder] where access(needed, W_OK) != 0 {
            throw ToolError(
                .notWritable, "\(needed) cannot be written by this user",
                hint: "Rotate as the owner of the store.")
        }
    }

    private func requireRoom(_ facts: RotationFacts) throws {
        guard let freeByteCount, freeByteCount < facts.file.byteCount else { return }
        throw ToolError(
            .io,
            "the pages need \(ProgressLine.bytes(facts.file.byteCount)), and "
                + "\(ProgressLine.bytes(freeByteCount)) are free",
            hint: "Free space first: a rotation writes every page beside the old ones.")
    }

    private func requirePause(_ pause: PauseOption) throws {
        let limit = pause.duration ?? Configuration().maximumRotationPause
        guard expectedPause > limit else { return }
        throw ToolError(
            .badInput,
            "writes would wait for \(RotationResult.seconds(expectedPause)) s or more, and the "
                + "limit is \(RotationResult.seconds(limit)) s",
            hint: "Allow a longer pause with --pause-max, at a time when few programs write.")
    }

    private mutating func requireSlots(
        _ facts: RotationFacts, _ newRoot: RotationRun.NewRoot, _ kind: KeySlot.Kind?
    ) throws {
        let slots = facts.keyring.slots
        if !facts.keyring.isReplacingRoot {
            _ = try newRoot.numbers(in: facts.keyring, of: facts.path)
        }
        try newRoot.kept.requireNone(of: slots.filter(newRoot.drops))
        let staying = slots.filter { !newRoot.drops($0) }
        guard !staying.isEmpty else {
            throw ToolError(
                .lastSlot, "no slot stays: nothing would open the store",
                hint: "Add a slot first, or drop fewer.")
        }
        let unnamed = try newRoot.kept.unnamed(staying)
        if unnamed.count == 1 {
            warnings = [
                "no secret is named for \(unnamed[0].named): it must be the slot that opens the "
                    + "store"
            ]
        }
        guard unnamed.count < 2, kind == nil || unnamed.allSatisfy({ $0.kind == kind }) else {
            throw ToolError(
                .secretSource,
                "no secret is named for \(unnamed.map(\.named).joined(separator: " and ")), and "
                    + "only the slot that opens the store needs none",
                hint: "Keep each by --keep SLOT=FILE, or name it among the slots that go.")
        }
    }
}
