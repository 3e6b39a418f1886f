import ArgumentParser
import Coffer

/// What a command names slots by: a number, or what the slots of many stores have in common.
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

/// The slots that a verb takes away from one store, or from several.
struct TakenSlotOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A slot, by \(SlotName.help): every slot of that name. With it, each argument is a "
                + "store. May be given several times.", valueName: "slot"),
        transform: SlotName.parse)
    var slot: [SlotName] = []

    /// The stores and the slots. Without `--slot`, the first argument is the store, and the others
    /// are its slots.
    ///
    /// - Throws: `ValidationError`.
    func split(_ stores: StoreListOptions) throws -> (stores: StoreListOptions, slots: [SlotName]) {
        guard slot.isEmpty else {
            guard slot.allSatisfy(\.isShared) || (stores.list == nil && stores.paths.count == 1)
            else {
                throw ValidationError(
                    "Each store numbers its slots by itself: for several stores, name the slot by "
                        + "label:TEXT or fingerprint:DIGITS.")
            }
            return (stores, slot)
        }
        guard stores.list == nil, stores.paths.count > 1 else {
            throw ValidationError("Name a slot: with --slot, or after the one store.")
        }
        let slots = try stores.paths.dropFirst().map { word in
            guard let name = SlotName(argument: word) else {
                throw ValidationError(
                    "'\(word)' is no slot: name it by \(SlotName.help). For several stores, name "
                        + "the slot with --slot.")
            }
            return name
        }
        var one = stores
        one.paths = [stores.paths[0]]
        return (one, slots)
    }
}
