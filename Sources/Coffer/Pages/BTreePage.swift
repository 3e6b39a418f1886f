/// One page of a b-tree, parsed for the pages that it refers to.
///
/// The content is not trusted: a pointer that leads out of the page is skipped.
/// See <https://www.sqlite.org/fileformat2.html#b_tree_pages>.
struct BTreePage {
    /// "A value of 2 (0x02) means the page is an interior index b-tree page. A value of 5 (0x05)
    /// means the page is an interior table b-tree page. A value of 10 (0x0a) means the page is a
    /// leaf index b-tree page. A value of 13 (0x0d) means the page is a leaf table b-tree page. Any
    /// other value for the b-tree page type is an error."
    enum Kind: Int {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13
    }

    /// The content of a cell, and the location of the rest of it.
    struct Payload {
        /// The row's id; 0 in an index, which has none.
        let rowID: Int64
        /// Bytes of the whole content, including overflow pages.
        let byteCount: Int
        /// The bytes in the cell itself.
        let local: ArraySlice<UInt8>
        /// The first overflow page; `nil` if the cell holds the whole content.
        let overflowPage: Int?
    }

    let kind: Kind
    private let page: PageBytes
    /// Not 0 on page 1, which begins with the database header.
    private let headerOffset: Int

    /// - Parameters:
    ///   - bytes: The usable bytes of a page.
    ///   - number: The page's number, from 1.
    /// - Returns: `nil` if the page is not a b-tree page.
    init?(_ bytes: [UInt8], number: Int) {
        page = PageBytes(bytes)
        // "The 100-byte database file header is found only on page 1, which is always a table
        // b-tree page."
        headerOffset = number == 1 ? 100 : 0
        // "the usable size is not allowed to be less than 480"
        guard bytes.count >= 480,
            let kind = page.integer(at: headerOffset, byteCount: 1).flatMap(Kind.init)
        else { return nil }
        self.kind = kind
    }

    var isLeaf: Bool { kind == .tableLeaf || kind == .indexLeaf }

    /// Numbers of the pages one level below. Some of them may not exist.
    var children: [Int] { branches.map(\.child) }

    /// The page below each cell, with the greatest row id in it, then the right-most page, which
    /// has no such limit. In an index no page has one. Some of the pages may not exist.
    var branches: [(child: Int, greatestRowID: Int64?)] {
        guard !isLeaf else { return [] }
        // "Table B-Tree Interior Cell (header 0x05): A 4-byte big-endian page number which is the
        // left child pointer. A varint which is the integer key"
        var branches = cellOffsets.compactMap { cell -> (child: Int, greatestRowID: Int64?)? in
            guard let child = page.integer(at: cell, byteCount: 4) else { return nil }
            var offset = cell + 4
            return (child, kind == .tableInterior ? page.signedVarint(at: &offset) : nil)
        }
        if let last = page.integer(at: headerOffset + 8, byteCount: 4) {
            branches.append((last, nil))
        }
        return branches
    }

    /// The number of cells that the page's header claims.
    var cellCount: Int { page.integer(at: headerOffset + 3, byteCount: 2) ?? 0 }

    /// The contents of those cells that can be read.
    var payloads: [Payload] {
        guard kind != .tableInterior else { return [] }
        return cellOffsets.compactMap(payload)
    }

    /// The end of the last cell that lies in the page whole.
    var endOfCells: Int {
        guard kind != .tableInterior else {
            return cellOffsets.map { cell in
                var offset = cell + 4
                return page.signedVarint(at: &offset) == nil ? 0 : offset
            }.max() ?? 0
        }
        return payloads.map { $0.overflowPage == nil ? $0.local.endIndex : 0 }.max() ?? 0
    }

    /// "The two-byte integer at offset 3 gives the number of cells on the page."
    /// "The cell pointer array of a b-tree page immediately follows the b-tree page header. Let K
    /// be the number of cells on the btree. The cell pointer array consists of K 2-byte integer
    /// offsets to the cell contents."
    private var cellOffsets: [Int] {
        let start = headerOffset + (isLeaf ? 8 : 12)
        // At most as many as fit on the page.
        let end = min(start + 2 * cellCount, page.bytes.count)
        return stride(from: start, to: end, by: 2).compactMap {
            page.integer(at: $0, byteCount: 2)
        }
    }

    /// "Table B-Tree Leaf Cell (header 0x0d): A varint which is the total number of bytes of
    /// payload, including any overflow. A varint which is the integer key … The initial portion of
    /// the payload that does not spill to overflow pages. A 4-byte big-endian integer page number
    /// for the first page of the overflow page list - omitted if all payload fits on the b-tree
    /// page." A cell of an index has no integer key, but begins with "a 4-byte big-endian page
    /// number which is the left child pointer" if it is an interior one.
    private func payload(ofCellAt cellOffset: Int) -> Payload? {
        var offset = cellOffset
        if kind == .indexInterior { offset += 4 }
        guard let byteCount = page.varint(at: &offset), byteCount <= Int32.max else { return nil }
        let rowID = kind == .tableLeaf ? page.signedVarint(at: &offset) : 0
        guard let rowID else { return nil }
        let localByteCount = localByteCount(of: byteCount)
        let end = offset + localByteCount
        guard end <= page.bytes.count else { return nil }
        var overflowPage: Int?
        if localByteCount < byteCount {
            guard let number = page.integer(at: end, byteCount: 4) else { return nil }
            overflowPage = number
        }
        return Payload(
            rowID: rowID, byteCount: byteCount, local: page.bytes[offset..<end],
            overflowPage: overflowPage)
    }

    /// "Let X be U-35. If the payload size P is less than or equal to X then the entire payload is
    /// stored on the b-tree leaf page. Let M be ((U-12)*32/255)-23 and let K be M+((P-M)%(U-4)). If
    /// P is greater than X then the number of bytes stored on the table b-tree leaf page is K if K
    /// is less or equal to X or M otherwise." On an index page: "Let X be ((U-12)*64/255)-23."
    private func localByteCount(of byteCount: Int) -> Int {
        let usable = page.bytes.count
        let most = kind == .tableLeaf ? usable - 35 : (usable - 12) * 64 / 255 - 23
        guard byteCount > most else { return byteCount }
        let least = (usable - 12) * 32 / 255 - 23
        let fitting = least + (byteCount - least) % (usable - 4)
        return fitting <= most ? fitting : least
    }
}
