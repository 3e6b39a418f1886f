/// Walks the trees of a damaged store, and hands out every row of every page that can be read.
///
/// No page is walked twice, and no tree deeper than SQLite's own limit, so every walk ends,
/// whatever the pages hold.
///
/// Memory: two bytes for each page.
final class TreeWalk {
    /// A row, or an entry of an index.
    struct Row {
        let page: Int
        /// 0 in an index.
        let rowID: Int64
        /// As much of the record as is left.
        let bytes: [UInt8]
        /// Bytes of the whole record.
        let byteCount: Int
    }

    /// A page of a tree that cannot be read.
    struct Loss {
        let page: Int
        /// Rows with this id and smaller ones are elsewhere; `nil` if nothing is smaller.
        let below: Int64?
        /// The greatest row id that the page can hold; `nil` if there is no limit.
        let last: Int64?
        fileprivate let depth: Int
    }

    /// What a walk did not find.
    struct Losses {
        fileprivate(set) var pages: [Loss] = []
        /// Cells that lead out of their page.
        fileprivate(set) var cellCount = 0
        fileprivate var leafDepth: Int?

        /// The lost pages that are not known to be leaves.
        var lostBranches: [Loss] { pages.filter { $0.depth != leafDepth } }
        /// Whether pages below a lost page may be readable, though nothing leads to them.
        var hasLostBranch: Bool { !lostBranches.isEmpty }
    }

    private let source: SalvageSource
    private let monitor: CopyMonitor
    /// The kind of each b-tree page, by number; 0 for other content and for damaged pages.
    private var kinds: [UInt8]
    private var isTaken: [Bool]
    private(set) var damagedPages: [Int] = []
    /// Rows in all leaves of tables, with those of pages that are free.
    private(set) var rowCount = 0
    /// Whether every page of the free list is known.
    private(set) var isFreeListWhole = false

    /// - Throws: `.cancelled`.
    /// - Complexity: O(*pages*).
    init(_ source: SalvageSource, _ monitor: CopyMonitor) throws(StoreError) {
        self.source = source
        self.monitor = monitor
        kinds = [UInt8](repeating: 0, count: source.pageCount + 1)
        isTaken = [Bool](repeating: false, count: source.pageCount + 1)
        for number in stride(from: 1, through: source.pageCount, by: 1)
        where number != source.lockPage {
            if number % CopyMonitor.interval == 0 {
                try monitor.report(.readingPages, number, of: source.pageCount)
            }
            guard let bytes = try source.page(number) else {
                damagedPages.append(number)
                continue
            }
            guard let page = BTreePage(bytes, number: number) else { continue }
            kinds[number] = UInt8(page.kind.rawValue)
            if page.kind == .tableLeaf { rowCount += page.cellCount }
        }
        try monitor.report(.readingPages, source.pageCount, of: source.pageCount)
        takeFreeList()
        takePointerMaps()
    }

    // MARK: Pages without rows

    /// "The first integer on a freelist trunk page is the page number of the next freelist trunk
    /// page … The second integer … is the number of leaf page pointers to follow."
    /// <https://www.sqlite.org/fileformat2.html#the_freelist>
    private func takeFreeList() {
        // "36: Total number of freelist pages."
        guard let header = source.header, var next = header.integer(at: 32, byteCount: 4),
            let total = header.integer(at: 36, byteCount: 4)
        else { return }
        var count = 0
        while next != 0, take(next), let bytes = try? source.page(next) {
            let page = PageBytes(bytes)
            let leafCount = min(page.integer(at: 4, byteCount: 4) ?? 0, bytes.count / 4 - 2)
            count += 1
            for index in stride(from: 2, to: 2 + leafCount, by: 1) {
                if let leaf = page.integer(at: 4 * index, byteCount: 4), take(leaf) { count += 1 }
            }
            next = page.integer(at: 0, byteCount: 4) ?? 0
        }
        isFreeListWhole = count == total
    }

    /// "If the 4-byte big-endian integer at offset 52 of the database header is non-zero … then the
    /// database contains ptrmap pages", the first of them page 2, each followed by the U/5 pages
    /// that it describes. <https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>
    private func takePointerMaps() {
        guard source.header?.integer(at: 52, byteCount: 4) ?? 0 != 0 else { return }
        let distance = source.usableByteCount / 5 + 1
        for number in stride(from: 2, through: source.pageCount, by: distance) { _ = take(number) }
    }

    /// - Returns: `false` for a page that does not exist, or that belongs to something already.
    private func take(_ number: Int) -> Bool {
        guard number >= 1, number <= source.pageCount, !isTaken[number] else { return false }
        isTaken[number] = true
        return true
    }

    // MARK: Trees

    /// "Maximum depth of an SQLite B-Tree structure. Any B-Tree deeper than this will be declared
    /// corrupt." <https://github.com/sqlite/sqlite/blob/version-3.46.1/src/btreeInt.h>
    private static let maximumDepth = 20

    /// Walks the tree of a table or an index in the order of its keys.
    ///
    /// - Parameters:
    ///   - root: The root page.
    ///   - isIndex: Whether it is the tree of an index, or of a table WITHOUT ROWID.
    ///   - found: Called with each row that has at least a beginning.
    /// - Throws: The error that `found` throws; `.cancelled`.
    func walk(
        _ root: Int, isIndex: Bool, _ found: (Row) throws(StoreError) -> Void
    ) throws(StoreError) -> Losses {
        var losses = Losses()
        try walk(root, isIndex, depth: 0, below: nil, last: nil, &losses, found)
        return losses
    }

    private func walk(
        _ number: Int, _ isIndex: Bool, depth: Int, below: Int64?, last: Int64?,
        _ losses: inout Losses, _ found: (Row) throws(StoreError) -> Void
    ) throws(StoreError) {
        let kinds: [BTreePage.Kind] =
            isIndex ? [.indexLeaf, .indexInterior] : [.tableLeaf, .tableInterior]
        guard depth < Self.maximumDepth, take(number), let bytes = try source.page(number),
            let page = BTreePage(bytes, number: number), kinds.contains(page.kind)
        else {
            losses.pages.append(Loss(page: number, below: below, last: last, depth: depth))
            return
        }
        if page.isLeaf { losses.leafDepth = losses.leafDepth ?? depth }
        let payloads = page.payloads
        if page.kind != .tableInterior { losses.cellCount += page.cellCount - payloads.count }
        for payload in payloads { try found(row(payload, page: number)) }
        var below = below
        for branch in page.branches {
            let last = branch.greatestRowID ?? (isIndex ? nil : last)
            try walk(
                branch.child, isIndex, depth: depth + 1, below: below, last: last, &losses, found)
            below = last
        }
    }

    /// Reads the record with its overflow pages, as far as they can be read.
    private func row(_ payload: BTreePage.Payload, page: Int) throws(StoreError) -> Row {
        var bytes = Array(payload.local)
        var next = payload.overflowPage ?? 0
        while next != 0, bytes.count < payload.byteCount, take(next),
            let overflow = try source.page(next)
        {
            bytes += overflow.dropFirst(4).prefix(payload.byteCount - bytes.count)
            next = PageBytes(overflow).integer(at: 0, byteCount: 4) ?? 0
        }
        return Row(
            page: page, rowID: payload.rowID, bytes: bytes, byteCount: payload.byteCount)
    }

    /// Whether the page is one of an index, or of a table WITHOUT ROWID.
    func isIndex(_ number: Int) -> Bool {
        kinds.indices.contains(number)
            && [BTreePage.Kind.indexLeaf, .indexInterior].contains {
                $0.rawValue == Int(kinds[number])
            }
    }

    // MARK: Orphans

    /// The top pages of trees, or of parts of trees, to which nothing leads: what is below a
    /// damaged page. Free pages of an unknown free list are among them.
    ///
    /// - Parameter isIndex: Whether pages of indexes are sought, or those of tables.
    /// - Throws: `.cancelled`.
    func orphans(isIndex: Bool) throws(StoreError) -> [Int] {
        let leaf: BTreePage.Kind = isIndex ? .indexLeaf : .tableLeaf
        let interior: BTreePage.Kind = isIndex ? .indexInterior : .tableInterior
        let found = kinds.indices.filter { number in
            !isTaken[number] && [leaf, interior].contains { Int(kinds[number]) == $0.rawValue }
        }
        var children: Set<Int> = []
        for number in found where Int(kinds[number]) == interior.rawValue {
            guard let bytes = try source.page(number),
                let page = BTreePage(bytes, number: number)
            else { continue }
            children.formUnion(page.children)
        }
        return found.filter { !children.contains($0) }
    }
}
