/// The result of `Store.salvage`: what the new store has, and what it lacks.
public struct SalvageReport: Sendable {
    /// A table of the damaged store.
    public struct Table: Sendable, Equatable {
        /// The table's name.
        public let name: String
        /// Rows that the table of the new store has.
        public internal(set) var rowCount = 0
        /// Rows of which overflow pages are lost. What is left of them is in the table for lost
        /// rows.
        public internal(set) var cutRowCount = 0
        /// Rows that the table of the new store did not take, such as two with one unique value.
        /// They are in the table for lost rows.
        public internal(set) var refusedRowCount = 0
        /// Lost pages that held rows.
        public internal(set) var gaps: [Gap] = []

        /// Whether the new table has every row.
        public var isWhole: Bool { cutRowCount == 0 && refusedRowCount == 0 && gaps.isEmpty }
    }

    /// A lost page of a table, and the rows that it may have held.
    public struct Gap: Sendable, Equatable, CustomStringConvertible {
        /// The page's number, from 1.
        public let page: Int
        /// The smallest row id that the page may have held; `nil` if there is no limit.
        public let firstRowID: Int64?
        /// The greatest one; `nil` if there is no limit.
        public let lastRowID: Int64?

        /// In words: `rows 121 to 166, page 17`.
        public var description: String {
            "\(Self.rows(from: firstRowID, through: lastRowID)), page \(page)"
        }

        /// Rows between two limits, in words.
        package static func rows(from first: Int64?, through last: Int64?) -> String {
            switch (first, last) {
            case (nil, nil): "any rows"
            case (let first?, nil): "rows from \(first) on"
            case (nil, let last?): "rows up to \(last)"
            case (let first?, let last?): "rows \(first) to \(last)"
            }
        }
    }

    /// The content of the new store, which was checked.
    public let copy: CopyReport
    /// Pages of the damaged store, with those that are missing at its end.
    public let pageCount: Int
    /// Pages that failed authentication or are missing.
    public let damagedPages: [DamagedPage]
    /// The tables whose definitions could be read.
    public let tables: [Table]
    /// The table of the new store that has the rows without another place; `nil` if there are
    /// none. It says of each row why it is there, from which page it came, and as far as known
    /// from which table.
    public let lostTableName: String?
    /// Rows of that table.
    public let lostRowCount: Int
    /// What else is not as it was: definitions that were lost or could not be made again, and rows
    /// that refer to missing ones.
    public let problems: [String]

    /// Whether the new store has every row, index, view and trigger of the damaged one.
    public var isComplete: Bool {
        let isRowFree = { (page: DamagedPage) in
            switch page.content {
            case .free, .pointerMap, .index: true
            case .table(let name, _): tables.contains { $0.name == name && $0.isWhole }
            case .schema, .unknown: false
            }
        }
        return lostRowCount == 0 && problems.isEmpty && tables.allSatisfy(\.isWhole)
            && damagedPages.allSatisfy(isRowFree)
    }
}
