/// The difference between two lists of rows that have an identity: which rows went, came, moved and
/// changed.
///
/// ```swift
/// for try await difference in store.observe({ tx in try tx.fetch(Note.order(by: \.title)) })
///     .differences(by: \.id)
/// {
///     table.delete(difference.removed.map(\.index))
///     table.insert(difference.inserted.map(\.index))
///     for move in difference.moved { table.move(move.from, to: move.to) }
///     table.reload(difference.updated.map(\.index))
/// }
/// ```
///
/// Indices count as lists of a screen expect them: of rows that went or move away in the old list,
/// of all others in the new one. As few rows as possible move.
public struct RowDifference<Row: Sendable>: Sendable {
    /// A row at an index.
    public struct Place: Sendable {
        /// In the old list for a row that went, otherwise in the new list.
        public let index: Int
        /// The row.
        public let row: Row
    }

    /// A row whose place among the rows of both lists has changed.
    public struct Move: Sendable {
        /// The index in the old list.
        public let from: Int
        /// The index in the new list.
        public let to: Int
        /// The row, as the new list has it.
        public let row: Row
    }

    /// The rows of the old list alone, by ascending index.
    public let removed: [Place]
    /// The rows of the new list alone, by ascending index.
    public let inserted: [Place]
    /// The rows of both lists whose order has changed, by ascending index in the new list.
    public let moved: [Move]
    /// The rows of both lists that are not equal, by ascending index in the new list. A row that
    /// moves may be among them.
    public let updated: [Place]
    private let oldCount: Int

    /// Whether both lists are equal.
    public var isEmpty: Bool {
        removed.isEmpty && inserted.isEmpty && moved.isEmpty && updated.isEmpty
    }

    /// Makes the new list of the old one.
    ///
    /// - Parameter rows: The old list of which the difference was made.
    /// - Returns: The new list; `nil` if `rows` has another number of rows than the old list.
    /// - Complexity: O(*rows*).
    public func applied(to rows: [Row]) -> [Row]? {
        guard rows.count == oldCount else { return nil }
        var leaves = [Bool](repeating: false, count: rows.count)
        for place in removed { leaves[place.index] = true }
        for move in moved { leaves[move.from] = true }
        var staying = rows.indices.lazy.filter { !leaves[$0] }.map { rows[$0] }.makeIterator()
        var (arriving, coming) = (moved[...], inserted[...])
        var result: [Row] = []
        result.reserveCapacity(rows.count - removed.count + inserted.count)
        while true {
            if coming.first?.index == result.count, let place = coming.popFirst() {
                result.append(place.row)
            } else if arriving.first?.to == result.count, let move = arriving.popFirst() {
                result.append(move.row)
            } else if let row = staying.next() {
                result.append(row)
            } else {
                break
            }
        }
        for place in updated { result[place.index] = place.row }
        return result
    }
}

extension RowDifference where Row: Equatable {
    /// Compares two lists.
    ///
    /// Rows are the same if their identities are equal, and updated if they are the same and not
    /// equal. If several rows of a list have one identity, the first of the old list is the first
    /// of the new one, and so on.
    ///
    /// - Parameters:
    ///   - old: The list before.
    ///   - new: The list after.
    ///   - identity: What tells a row from the others, mostly its key.
    /// - Complexity: O(*rows* · log *rows*), and O(*rows*) if no row moves.
    public init<ID: Hashable>(
        from old: [Row], to new: [Row], by identity: (Row) throws -> ID
    ) rethrows {
        let partners = try Self.partners(of: new, in: old, identity)
        var isLeft = [Bool](repeating: true, count: old.count)
        let staying = Self.longestIncreasing(partners)
        var (inserted, moved, updated): ([Place], [Move], [Place]) = ([], [], [])
        for (index, row) in new.enumerated() {
            guard let partner = partners[index] else {
                inserted.append(Place(index: index, row: row))
                continue
            }
            isLeft[partner] = false
            if !staying[index] { moved.append(Move(from: partner, to: index, row: row)) }
            if old[partner] != row { updated.append(Place(index: index, row: row)) }
        }
        removed = old.indices.filter { isLeft[$0] }.map { Place(index: $0, row: old[$0]) }
        (self.inserted, self.moved, self.updated) = (inserted, moved, updated)
        oldCount = old.count
    }

    /// The index in `old` of each row of `new`; `nil` for a row that is new.
    private static func partners<ID: Hashable>(
        of new: [Row], in old: [Row], _ identity: (Row) throws -> ID
    ) rethrows -> [Int?] {
        // The first row of each identity, and from each row the next one of its identity.
        var first: [ID: Int] = Dictionary(minimumCapacity: old.count)
        var next = [Int?](repeating: nil, count: old.count)
        for index in old.indices.reversed() {
            next[index] = first.updateValue(index, forKey: try identity(old[index]))
        }
        return try new.map { row in
            let id = try identity(row)
            guard let index = first[id] else { return nil }
            first[id] = next[index]
            return index
        }
    }

    /// Chooses as many numbers as possible that ascend.
    ///
    /// - Returns: Whether the number at each index is among them.
    private static func longestIncreasing(_ numbers: [Int?]) -> [Bool] {
        // For each length, the index of the least number that ends so many ascending numbers.
        var ends: [Int] = []
        var previous = [Int?](repeating: nil, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            guard let number else { continue }
            var (low, high) = (0, ends.count)
            if let last = ends.last, let end = numbers[last], end < number { low = high }
            while low < high {
                let middle = (low + high) / 2
                if let end = numbers[ends[middle]], end < number {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var isChosen = [Bool](repeating: false, count: numbers.count)
        var index = ends.last
        while let chosen = index {
            isChosen[chosen] = true
            index = previous[chosen]
        }
        return isChosen
    }
}

extension RowDifference.Place: Equatable where Row: Equatable {}
extension RowDifference.Place: Hashable where Row: Hashable {}
extension RowDifference.Move: Equatable where Row: Equatable {}
extension RowDifference.Move: Hashable where Row: Hashable {}
extension RowDifference: Equatable where Row: Equatable {}
extension RowDifference: Hashable where Row: Hashable {}
