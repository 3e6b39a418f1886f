/// Both areas of a keyring's file, as far as they are whole.
struct KeyringAreas {
    /// The two areas; `nil` for one whose digest or bytes are wrong.
    let stored: [KeyringArea?]

    /// - Parameter bytes: The whole file.
    /// - Throws: `.keyringDamaged` if neither area is whole; `.needsNewerProgram` if one that is
    ///   has been written by a later version.
    init(stored bytes: [UInt8]) throws(StoreError) {
        var stored: [KeyringArea?] = []
        var failure: StoreError?
        for start in [0, KeyringArea.byteCount] {
            do throws(StoreError) {
                let end = min(start + KeyringArea.byteCount, bytes.count)
                let area = bytes[min(start, end)..<end]
                // An area with the bytes of the first needs no second check.
                if let first = stored.first ?? nil, first.bytes[...] == area {
                    stored.append(first)
                } else {
                    stored.append(try KeyringArea(stored: Array(area)))
                }
            } catch {
                guard error.code != .needsNewerProgram else { throw error }
                // A cost that no keyring may have is not a torn write.
                failure = failure.map { $0.code == .tooCostly ? $0 : error } ?? error
                stored.append(nil)
            }
        }
        if let failure, stored.allSatisfy({ $0 == nil }) { throw failure }
        self.stored = stored
    }

    /// Whether both areas are whole and have the same content.
    var areEqual: Bool { stored[0] != nil && stored[0] == stored[1] }

    /// The areas that may be the current one, in the order to try them.
    ///
    /// The area of higher generation counts, even if its MAC turns out wrong. Two areas of one
    /// generation differ only if a lock did not hold; then the first counts if it opens.
    var current: [KeyringArea] {
        let areas = stored.compactMap { $0 }
        guard areas.count == 2 else { return areas }
        if areas[0] == areas[1] { return [areas[0]] }
        if areas[0].content.generation == areas[1].content.generation { return areas }
        return [areas[0].content.generation > areas[1].content.generation ? areas[0] : areas[1]]
    }

    /// The area to write first: a damaged one, or else the older one. The other area holds the
    /// current state until the first is on the disk.
    var staleIndex: Int {
        guard let first = stored[0] else { return 0 }
        guard let second = stored[1] else { return 1 }
        return second.content.generation < first.content.generation ? 1 : 0
    }

    /// The highest generation of both.
    var generation: UInt64 { stored.compactMap { $0?.content.generation }.max() ?? 0 }

    /// The current area, if the root is its own; `nil` for another root.
    func authentic(under root: borrowing RootKey) -> KeyringArea? {
        for area in current where area.isAuthentic(under: root) { return area }
        return nil
    }
}
