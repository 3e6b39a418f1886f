import ArgumentParser

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
        return (stores.ofFirstPath, slots)
    }
}
