/// What a page holds, as far as the pages that refer to it tell.
public enum PageContent: Sendable, Hashable, CustomStringConvertible {
    /// The list of tables, indexes, views and triggers.
    case schema
    /// Rows of the table of this name.
    case table(String, PageRole)
    /// Entries of the index of this name.
    case index(String, table: String, PageRole)
    /// Nothing: the page is on the list of free pages.
    case free
    /// Which page refers to which; only in files with `auto_vacuum`.
    case pointerMap
    /// No page that can be read refers to it: what does is damaged itself, or there is none.
    case unknown

    /// In words, without an article for what the name of the table follows: `a leaf of table note`.
    public var description: String {
        switch self {
        case .schema: "the schema"
        case .table(let name, let role): "\(role) of table \(name)"
        case .index(let name, let table, let role): "\(role) of index \(name) of table \(table)"
        case .free: "free"
        case .pointerMap: "a pointer map"
        case .unknown: "unknown"
        }
    }
}

/// What a page is to the tree of its table or index.
public enum PageRole: Sendable, Hashable, CustomStringConvertible {
    /// Holds rows, or entries of an index.
    case leaf
    /// Leads to the pages below it; in an index, and in a table `WITHOUT ROWID`, it holds entries
    /// as well.
    case interior
    /// Holds a part of a value that is too long for one page.
    case overflow
    /// A leaf or an interior page; which of the two cannot be known.
    case node

    /// In words: `a leaf`.
    public var description: String {
        switch self {
        case .leaf: "a leaf"
        case .interior: "an interior page"
        case .overflow: "overflow"
        case .node: "a page"
        }
    }
}
