import ArgumentParser
import Coffer

/// The name of one slot or of several, as a command gives it. Stores number the same slot
/// differently, so a command for many stores names it by its label or its fingerprint.
enum SlotName: CustomStringConvertible, Hashable, Sendable {
    case number(KeySlot.ID)
    case label(String)
    /// 16 hex digits.
    case fingerprint(String)

    init?(argument: String) {
        if let number = KeySlot.ID(argument) {
            self = .number(number)
            return
        }
        let parts = argument.split(separator: ":", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { return nil }
        switch parts[0] {
        case "label": self = .label(parts[1])
        case "fingerprint" where parts[1].count == 16 && parts[1].allSatisfy(\.isHexDigit):
            self = .fingerprint(parts[1].lowercased())
        default: return nil
        }
    }

    /// - Throws: `ValidationError`.
    static func parse(_ argument: String) throws -> SlotName {
        guard let name = SlotName(argument: argument) else {
            throw ValidationError("A slot is named by \(help), which has 16 hex digits.")
        }
        return name
    }

    /// The argument that names the same slots.
    var description: String {
        switch self {
        case .number(let number): "\(number)"
        case .label(let label): "label:\(label)"
        case .fingerprint(let digits): "fingerprint:\(digits)"
        }
    }

    /// Whether several stores can have the same slot by this name.
    var isShared: Bool {
        if case .number = self { false } else { true }
    }

    /// Whether the number is one that no slot of the keyring has had yet.
    func isBeyond(_ keyring: Keyring) -> Bool {
        if case .number(let id) = self { id >= keyring.nextSlotID } else { false }
    }

    func matches(_ slot: KeySlot) -> Bool {
        switch self {
        case .number(let number): slot.id == number
        // Two texts that are equal may have different bytes.
        case .label(let label): slot.label.utf8.elementsEqual(label.utf8)
        case .fingerprint(let digits): slot.fingerprint == digits
        }
    }

    /// Whether somebody might mean the slot, and `matches` does not.
    func resembles(_ slot: KeySlot) -> Bool {
        guard case .label(let label) = self, !matches(slot) else { return false }
        // Texts are equal if they look the same, whatever their bytes.
        func plain(_ text: String) -> String {
            text.lowercased().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
        return plain(slot.label) == plain(label)
    }

    static let help = "a number, label:TEXT or fingerprint:DIGITS"
}

extension [SlotName] {
    /// The names in a message.
    var listed: String { map(\.description).joined(separator: " or ") }

    /// The numbers of the slots, each once.
    ///
    /// - Parameters:
    ///   - slots: The slots of the store.
    ///   - isComplete: Whether each name must be that of a slot.
    /// - Throws: `ToolError` `.notFound` if it is not.
    func numbers(
        in slots: [KeySlot], of path: String, isComplete: Bool = true
    ) throws -> [KeySlot.ID] {
        var numbers: [KeySlot.ID] = []
        for name in self {
            let found = slots.filter(name.matches).map(\.id)
            guard !found.isEmpty || !isComplete else {
                throw ToolError(
                    .notFound, "there is no slot \(name)",
                    hint: "coffer key list \(ShellWord.of(path)) shows the slots.")
            }
            numbers += found.filter { !numbers.contains($0) }
        }
        return numbers
    }
}
