import ArgumentParser
import Coffer

/// The secrets of the slots that stay when the root key is replaced.
struct KeptSlotOptions: ParsableArguments {
    @Option(
        name: .customLong("keep"),
        help: ArgumentHelp(
            "Keep a slot by the secret in a file: its passphrase, its key file, or the letters of "
                + "its recovery key. The slot is \(SlotName.help). May be given several times. "
                + "Without it, a terminal is asked.",
            valueName: "slot=path"),
        completion: .list([]))
    var files: [String] = []

    @Option(
        help: ArgumentHelp(
            "Keep the external slots: this shell command unwraps their secrets.",
            valueName: "command"),
        completion: .list([]))
    var keepUnwrapCommand: String?

    /// Whether an option is given.
    var isNamed: Bool { !files.isEmpty || keepUnwrapCommand != nil }

    /// The options for a run of the tool.
    var arguments: [String] {
        files.map { "--keep=\($0)" }
            + (keepUnwrapCommand.map { ["--keep-unwrap-command=\($0)"] } ?? [])
    }

    func validate() throws { _ = try paths() }

    /// The paths by the names of their slots.
    private func paths() throws -> [SlotName: String] {
        var paths: [SlotName: String] = [:]
        for file in files {
            let parts = file.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let name = SlotName(argument: parts[0]) else {
                throw ValidationError(
                    "--keep takes a slot and a path: --keep 3=FILE, or --keep label:TEXT=FILE.")
            }
            guard paths.updateValue(parts[1], forKey: name) == nil else {
                throw ValidationError("--keep names slot \(name) twice.")
            }
        }
        return paths
    }

    /// The file of a slot. A number goes before a fingerprint, and that before a label.
    private static func file(for slot: KeySlot, in paths: [SlotName: String]) -> String? {
        paths[.number(slot.id)] ?? slot.fingerprint.flatMap { paths[.fingerprint($0)] }
            ?? paths[.label(slot.label)]
    }

    /// Refuses a file that gives its bytes to the first run of a list alone.
    ///
    /// - Throws: `ToolError` `.secretSource`.
    func requireReadableAgain() throws {
        for path in try paths().values.sorted() where ListSecret.isReadOnce(path) {
            throw ToolError(
                .secretSource, "\(path) can be read once, and each store of a list needs it",
                hint: "Name a file for --keep.")
        }
    }

    /// Refuses to keep a slot that goes.
    ///
    /// - Throws: `ToolError` `.usage`.
    func requireNone(of dropped: [KeySlot]) throws {
        for name in try paths().keys {
            guard let slot = dropped.first(where: name.matches) else { continue }
            throw ToolError(
                .usage, "--keep names \(slot.named), which does not stay",
                hint: "Keep it or drop it. Nothing was changed.")
        }
    }

    /// Returns the slots that need a secret, but for which no option names one.
    func unnamed(_ slots: [KeySlot]) throws -> [KeySlot] {
        let named = try paths()
        return slots.filter { slot in
            switch slot.kind {
            case .recipient: false
            case .external: keepUnwrapCommand == nil
            default: Self.file(for: slot, in: named) == nil
            }
        }
    }

    /// Keeps each slot that stays and needs a secret.
    ///
    /// - Parameters:
    ///   - dropped: The slots that do not stay.
    ///   - own: The slot that opened the store, which needs no further secret.
    func keep(
        in plan: inout RootKeyPlan, dropping dropped: [KeySlot.ID], own: KeySlot.ID,
        for path: String
    ) throws {
        let paths = try paths()
        try requireNone(of: plan.slots.filter { dropped.contains($0.id) })
        let isAsked = (try? Prompt.terminal(toShow: "questions", hint: "").close()) != nil
        for slot in plan.slots where !dropped.contains(slot.id) {
            let file = Self.file(for: slot, in: paths)
            guard slot.kind != .recipient, slot.id != own || file != nil else { continue }
            guard let source = source(for: slot, file, isAsked: isAsked) else {
                throw ToolError(
                    .secretSource, "no secret is named for \(slot.named), a \(slot.kind)",
                    hint: slot.kind == .external
                        ? "Keep it with --keep-unwrap-command, or name slot \(slot.id) among "
                            + "those that go. Nothing was changed."
                        : "Keep it with --keep \(slot.id)=FILE, or name slot \(slot.id) among "
                            + "those that go. Nothing was changed.")
            }
            try plan.keep(slot.id, try SecretReader.credential(source, of: slot, for: path))
        }
        // Not every store of a list has a slot of each label.
        let staying = plan.slots.filter { !dropped.contains($0.id) }
        for name in paths.keys.filter({ !$0.isShared }) where !staying.contains(where: name.matches)
        {
            throw ToolError(
                .usage, "--keep names slot \(name), which does not stay or does not exist",
                hint: "coffer key list \(ShellWord.of(path)) shows the slots.")
        }
    }

    private func source(for slot: KeySlot, _ file: String?, isAsked: Bool) -> SecretSource? {
        let form: SecretSource.Form
        switch slot.kind {
        case .passphrase: form = .passphrase
        case .keyFile: form = .keyFile
        case .recoveryKey: form = .recoveryKey
        default:
            return keepUnwrapCommand.map {
                SecretSource(origin: .command($0), form: .external(slot: slot.id))
            }
        }
        if let file { return SecretSource(origin: .file(file), form: form) }
        // A key file is not typed.
        return isAsked && form != .keyFile ? SecretSource(origin: .prompt, form: form) : nil
    }
}
