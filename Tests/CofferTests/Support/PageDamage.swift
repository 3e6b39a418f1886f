import Workload

/// The kinds of damage to a page.
enum PageDamage: CaseIterable {
    case bit, mac, noise, zeros

    func apply(to page: inout ArraySlice<UInt8>, reservedByteCount: Int, seed: UInt64) {
        switch self {
        case .bit: page[page.startIndex + page.count / 3] ^= 1
        case .mac: page[page.endIndex - reservedByteCount + 16] ^= 0x80
        case .noise:
            var generator = SeededGenerator(seed: seed)
            for index in page.indices { page[index] = generator.next() }
        case .zeros: for index in page.indices { page[index] = 0 }
        }
    }
}
