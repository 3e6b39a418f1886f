/// Finds out what given pages hold, by walking all structures that refer to pages: the schema's
/// tree, the free list, and the tree of each table and index.
///
/// The sought pages need not be readable; the pages that refer to them must be. Nothing is known
/// about the pages below an unreadable page.
///
/// Page contents are not trusted. No page is walked twice, no tree is walked deeper than SQLite's
/// own limit, and a number that leads nowhere is skipped. So every walk ends, whatever the pages
/// hold.
///
/// Memory: one bit for each page, the sought pages, and one entry for each table and index.
struct PageOwners {
    /// Returns a decrypted page without the bytes that the cipher reserves; `nil` if it is damaged
    /// or does not exist.
    typealias Read = (Int) throws(StoreError) -> [UInt8]?

    private let readPage: Read
    /// Bytes of a page that SQLite uses.
    private var usableByteCount = Int.max
    private var sought: Set<Int>
    private var contents: [Int: PageContent] = [:]
    private var walked: PageSet
    private var encoding = SchemaRow.Encoding.utf8

    /// Returns what each of the pages holds.
    ///
    /// - Parameters:
    ///   - numbers: The pages to find.
    ///   - pageCount: Pages of the file, for which memory is reserved.
    ///   - read: Reads a page.
    /// - Returns: An entry for each number.
    /// - Throws: The error that `read` throws.
    /// - Complexity: O(*pages*); ends as soon as all pages are found.
    static func contents(
        of numbers: Set<Int>, pageCount: Int, read: @escaping Read
    ) throws(StoreError) -> [Int: PageContent] {
        var owners = PageOwners(read: read, sought: numbers, walked: PageSet(pageCount))
        try owners.walkAll()
        for number in owners.sought { owners.contents[number] = .unknown }
        return owners.contents
    }

    private init(read: @escaping Read, sought: Set<Int>, walked: PageSet) {
        readPage = read
        self.sought = sought
        self.walked = walked
    }

    private mutating func walkAll() throws(StoreError) {
        guard let first = try read(1) else {
            // Every walk starts at page 1.
            found(1, .schema)
            return
        }
        usableByteCount = Self.usableByteCount(first)
        let header = PageBytes(Array(first.prefix(usableByteCount)))
        encoding = header.integer(at: 56, byteCount: 4).flatMap(SchemaRow.Encoding.init) ?? .utf8
        findPointerMaps(header)
        var schema = Tree(root: 1) { _ in .schema }
        let rows = try walk(&schema)
        // "The 4-byte big-endian integer at offset 32 stores the page number of the first page of
        // the freelist, or zero if the freelist is empty."
        try walkFreeList(from: header.integer(at: 32, byteCount: 4) ?? 0)
        for row in rows.values.sorted(by: { $0.rootPage < $1.rootPage }) {
            guard !sought.isEmpty else { return }
            var tree = Tree(root: row.rootPage) { role in
                row.isIndex
                    ? .index(row.name, table: row.tableName, role) : .table(row.name, role)
            }
            _ = try walk(&tree)
        }
    }

    /// "The "usable size" of a database page is the page size specified by the 2-byte integer at
    /// offset 16 in the header less the "reserved" space size recorded in the 1-byte integer at
    /// offset 20 in the header." <https://www.sqlite.org/fileformat2.html#reserved_bytes_per_page>
    ///
    /// SQLCipher 4 records 80 even in files whose MAC and IV take 48, so the profile cannot be
    /// used.
    static func usableByteCount(_ first: [UInt8]) -> Int {
        let header = PageBytes(first)
        guard let size = header.integer(at: 16, byteCount: 2),
            let reserved = header.integer(at: 20, byteCount: 1)
        else { return first.count }
        // "or the value 1 representing a page size of 65536"
        let usable = (size == 1 ? 65536 : size) - reserved
        return (480...max(480, first.count)).contains(usable) ? usable : first.count
    }

    private func read(_ number: Int) throws(StoreError) -> [UInt8]? {
        guard let page = try readPage(number) else { return nil }
        return page.count > usableByteCount ? Array(page.prefix(usableByteCount)) : page
    }

    private mutating func found(_ number: Int, _ content: PageContent) {
        if sought.remove(number) != nil { contents[number] = content }
    }

    // MARK: Lists

    /// "The first integer on a freelist trunk page is the page number of the next freelist trunk
    /// page in the list or zero if this is the last freelist trunk page. The second integer on a
    /// freelist trunk page is the number of leaf page pointers to follow. Call the second integer
    /// on a freelist trunk page L. If L is greater than zero then integers with array indexes
    /// between 2 and L+1 inclusive contain page numbers for freelist leaf pages."
    /// <https://www.sqlite.org/fileformat2.html#the_freelist>
    private mutating func walkFreeList(from first: Int) throws(StoreError) {
        var next = first
        while next != 0, !sought.isEmpty {
            found(next, .free)
            guard walked.insert(next), let bytes = try read(next) else { return }
            let page = PageBytes(bytes)
            let leafCount = min(page.integer(at: 4, byteCount: 4) ?? 0, bytes.count / 4 - 2)
            for index in stride(from: 2, to: 2 + leafCount, by: 1) {
                if let leaf = page.integer(at: 4 * index, byteCount: 4) { found(leaf, .free) }
            }
            next = page.integer(at: 0, byteCount: 4) ?? 0
        }
    }

    /// Walks the overflow pages that hold the end of a value.
    ///
    /// "The first four bytes of each overflow page are a big-endian integer which is the page
    /// number of the next page in the chain, or zero for the final page in the chain. The fifth
    /// byte through the last usable byte are used to hold overflow content."
    /// <https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages>
    private mutating func walkOverflow(
        from first: Int, byteCount: Int, _ tree: Tree
    ) throws(StoreError) {
        var next = first
        var rest = byteCount
        while next != 0, rest > 0, !isDone(tree) {
            found(next, tree.content(.overflow))
            guard walked.insert(next), let bytes = try read(next) else { return }
            rest -= bytes.count - 4
            next = PageBytes(bytes).integer(at: 0, byteCount: 4) ?? 0
        }
    }

    /// Finds pointer maps by their position, which follows from the page size and not from the
    /// content of pages.
    ///
    /// "If the 4-byte big-endian integer at offset 52 of the database header is non-zero … then the
    /// database contains ptrmap pages", the first of them page 2, each followed by the U/5 pages
    /// that it describes. <https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages>
    private mutating func findPointerMaps(_ header: PageBytes) {
        guard header.integer(at: 52, byteCount: 4) ?? 0 != 0 else { return }
        let distance = header.bytes.count / 5 + 1
        for number in sought where number >= 2 && (number - 2) % distance == 0 {
            found(number, .pointerMap)
        }
    }

    // MARK: Trees

    /// The tree of a table or an index, while it is walked.
    private struct Tree {
        let root: Int
        let content: (PageRole) -> PageContent
        /// The depth of the leaves below the root, which is the same for all leaves.
        var leafDepth: Int?
        /// Unreadable sought pages: their role follows from their depth once `leafDepth` is known.
        var unreadable: [(number: Int, depth: Int)] = []

        init(root: Int, content: @escaping (PageRole) -> PageContent) {
            self.root = root
            self.content = content
        }
    }

    /// "Maximum depth of an SQLite B-Tree structure. Any B-Tree deeper than this will be declared
    /// corrupt." <https://github.com/sqlite/sqlite/blob/version-3.46.1/src/btreeInt.h>
    private static let maximumDepth = 20

    /// Whether nothing more can be learned from the tree.
    private func isDone(_ tree: Tree) -> Bool {
        sought.isEmpty && (tree.unreadable.isEmpty || tree.leafDepth != nil)
    }

    /// Returns the schema's rows by root page if this is the schema's tree.
    private mutating func walk(_ tree: inout Tree) throws(StoreError) -> [Int: SchemaRow] {
        var rows: [Int: SchemaRow] = [:]
        try walk(tree.root, depth: 0, &tree, &rows)
        for (number, depth) in tree.unreadable {
            let role: PageRole =
                switch tree.leafDepth {
                case depth: .leaf
                case .some(let leafDepth) where depth < leafDepth: .interior
                default: .node
                }
            contents[number] = tree.content(role)
        }
        return rows
    }

    private mutating func walk(
        _ number: Int, depth: Int, _ tree: inout Tree, _ rows: inout [Int: SchemaRow]
    ) throws(StoreError) {
        guard number > 0, depth < Self.maximumDepth, !isDone(tree), walked.insert(number) else {
            return
        }
        guard let bytes = try read(number), let page = BTreePage(bytes, number: number) else {
            if sought.remove(number) != nil { tree.unreadable.append((number, depth)) }
            return
        }
        found(number, tree.content(page.isLeaf ? .leaf : .interior))
        if page.isLeaf { tree.leafDepth = tree.leafDepth ?? depth }
        for payload in page.payloads {
            if tree.root == 1, page.kind == .tableLeaf, let row = try schemaRow(payload) {
                rows[row.rootPage] = row
            }
            guard let overflowPage = payload.overflowPage else { continue }
            let byteCount = payload.byteCount - payload.local.count
            try walkOverflow(from: overflowPage, byteCount: byteCount, tree)
        }
        for child in page.children {
            try walk(child, depth: depth + 1, &tree, &rows)
        }
    }

    /// Bytes of a schema row that are read: names beyond them are not found.
    private static let maximumRowByteCount = 1 << 14

    /// Decodes one row of `sqlite_master`; `nil` if its bytes are not such a row. Reads it only up
    /// to the root page, because the SQL text comes after it. Throws errors of reading pages.
    private func schemaRow(_ payload: BTreePage.Payload) throws(StoreError) -> SchemaRow? {
        var record = Array(payload.local)
        var next = payload.overflowPage ?? 0
        while true {
            if let row = SchemaRow(record: record, encoding: encoding) { return row }
            guard next != 0, record.count < min(payload.byteCount, Self.maximumRowByteCount),
                let bytes = try read(next)
            else { return nil }
            record += bytes.dropFirst(4)
            next = PageBytes(bytes).integer(at: 0, byteCount: 4) ?? 0
        }
    }
}

/// A set of page numbers: one bit for each page of the file, and a `Set` for numbers beyond it.
private struct PageSet {
    private var words: [UInt64]
    private var others: Set<Int> = []

    init(_ pageCount: Int) {
        words = [UInt64](repeating: 0, count: pageCount / 64 + 1)
    }

    /// - Returns: `false` if the number was in the set before.
    mutating func insert(_ number: Int) -> Bool {
        let (word, bit) = (number / 64, UInt64(1) << UInt64(number % 64))
        guard words.indices.contains(word) else { return others.insert(number).inserted }
        defer { words[word] |= bit }
        return words[word] & bit == 0
    }
}
