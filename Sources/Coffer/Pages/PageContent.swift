/// The content of a page, as far as the pages that refer to it reveal it.
public enum PageContent: Sendable, Hashable, CustomStringConvertible {
    /// The list of tables, indexes, views and triggers.
    case schema
    /// Rows of the table of this name.
    case table(String, PageRole)
    /// Entries of the index of this name.
    case index(String, table: String, PageRole)
    /// No content: the page is in the free list.
    case free
    /// A map from each page to the page that refers to it; only in files with `auto_vacuum`.
    case pointerMap
    /// No readable page refers to it: the referring page is damaged itself, or does not exist.
    case unknown

    /// In words: `a leaf of table note`.
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

/// The role of a page in the tree of its table or index.
public enum PageRole: Sendable, Hashable, CustomStringConvertible {
    /// Holds rows, or entries of an index.
    case leaf
    /// Points to the pages below it. In an index, and in a table `WITHOUT ROWID`, it also holds
    /// entries.
    case interior
    /// Holds a section of a value that is too long for one page.
    case overflow
    /// A leaf or an interior page; it cannot be determined which.
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
