import Coffer

/// The secret of an external slot, which a service such as a KMS wraps and unwraps. The commands
/// come from the command line only, never from a file.
struct WrappedSecret {
    let slotID: UInt16
    private let blob: [UInt8]
    private let variables: [String]

    /// Finds the slot in a keyring.
    ///
    /// - Parameters:
    ///   - path: The store, or the place of its replica, for messages and the command.
    ///   - slot: The number of the slot; `nil` for the only external slot.
    /// - Throws: `ToolError` `.secretSource` if no number is given, and the keyring has no external
    ///   slot or several; `StoreError` if the number is not that of an external slot.
    init(_ keyring: Keyring, of path: String, slot: UInt16?) throws {
        let external = keyring.slots.filter { $0.kind == .external }.map(\.id)
        guard let slot = slot ?? (external.count == 1 ? external.first : nil) else {
            let numbers = external.map(String.init).joined(separator: ", ")
            throw ToolError(
                .secretSource,
                external.isEmpty
                    ? "the keyring of \(path) has no external slot"
                    : "the keyring of \(path) has several external slots: \(numbers)",
                hint: external.isEmpty
                    ? "Add one with coffer key add --wrap-command."
                    : "Choose one with --unwrap-slot.")
        }
        slotID = slot
        blob = try keyring.blob(of: slot)
        variables = StoreVariables.of(path, keyring, slot: slot)
    }

    /// Runs the command that unwraps the secret: 32 bytes.
    func unwrapped(
        by command: String, into bytes: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let count = try blob.withUnsafeBytes { blob in
            try ShellCommand(command, name: "the unwrap command")
                .answer(to: blob, variables: variables, into: bytes)
        }
        guard count == 32 else {
            throw ToolError(
                .secretSource, "the unwrap command wrote \(count) bytes instead of 32",
                hint: "It must write the unwrapped bytes alone, without a newline.")
        }
        return count
    }

    /// A slot whose secret the command wraps.
    ///
    /// - Parameters:
    ///   - unwrapping: A command that unwraps it again, as a proof before anything is written.
    ///   - slot: The slot that gets the new secret; `nil` for a new slot. The commands get the
    ///     number of the next one then.
    static func slot(
        wrappedBy command: String, unwrapping: String?, for path: String, slot: UInt16?
    ) throws -> NewSlot {
        let keyring = try Keyring(of: path)
        let variables = StoreVariables.of(path, keyring, slot: slot ?? keyring.nextSlotID)
        return .external { secret in
            let blob = try wrapped(secret, by: command, variables)
            if let unwrapping {
                try require(secret, of: blob, by: unwrapping, variables)
            } else {
                Terminal.warn(
                    "nothing has unwrapped the new secret yet: try it with coffer key test "
                        + "\(ShellWord.of(path)) --unwrap-command before you rely on it")
            }
            return blob
        }
    }

    private static func wrapped(
        _ secret: UnsafeRawBufferPointer, by command: String, _ variables: [String]
    ) throws -> [UInt8] {
        var blob = [UInt8](repeating: 0, count: KeySlot.maximumBlobByteCount + 1)
        let count = try blob.withUnsafeMutableBytes { output in
            try ShellCommand(command, name: "the wrap command")
                .answer(to: secret, variables: variables, into: output)
        }
        blob.removeLast(blob.count - count)
        guard !blob.isEmpty, !SecretDigits.areShown(of: secret, in: blob) else {
            blob.withUnsafeMutableBytes { $0.wipe() }
            throw ToolError(
                .secretSource,
                blob.isEmpty
                    ? "the wrap command wrote nothing"
                    : "the wrap command wrote the secret back as it was",
                hint: "It must encrypt the 32 bytes of its standard input.")
        }
        return blob
    }

    /// Unwraps the blob again.
    ///
    /// - Throws: `ToolError` `.secretSource` if the command does not give the secret back.
    private static func require(
        _ secret: UnsafeRawBufferPointer, of blob: [UInt8], by command: String,
        _ variables: [String]
    ) throws {
        let name = "the new unwrap command"
        let found = try StoreKey(isPassphrase: true, maximumByteCount: 4096) { bytes in
            try blob.withUnsafeBytes { blob in
                try ShellCommand(command, name: name)
                    .answer(to: blob, variables: variables, into: bytes)
            }
        }
        guard found.withBytes({ $0.elementsEqual(secret) }) else {
            throw ToolError(
                .secretSource, "\(name) does not give back what the wrap command was given",
                hint: "Nothing was changed. Run both alone, one after the other.")
        }
    }
}
