/// Positions of columns, of which nearly all are below 64.
struct ColumnSet: Sendable, Equatable {
    /// The positions below 64, one bit each.
    private(set) var first: UInt64 = 0
    private var others: Set<Int32> = []

    init() {}

    init(_ positions: some Sequence<Int>) {
        for position in positions {
            if position < 64 {
                first |= 1 << UInt64(position)
            } else {
                others.insert(Int32(position))
            }
        }
    }

    /// The same set of columns, each that many positions further.
    func moved(by count: Int) -> ColumnSet {
        let low = (0..<64).filter { contains(Int32($0)) }
        return ColumnSet((low + others.map { Int($0) }).map { $0 + count })
    }

    @inline(__always)
    func contains(_ position: Int32) -> Bool {
        position < 64 ? first >> UInt64(position) & 1 != 0 : others.contains(position)
    }
}
