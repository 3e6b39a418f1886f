/// Tables of the main file that something reads or writes, by name, in lower case.
struct TableSet: Sendable, Equatable {
    /// Compared byte for byte, as SQLite compares all letters but those of ASCII.
    private(set) var names: Set<SQLText> = []
    /// Whether it stands for every table, because the actual tables are unknown.
    private(set) var isEverything = false

    init(_ names: Set<String> = []) {
        self.names = Set(names.map(SQLText.init))
    }

    static let everything: TableSet = {
        var set = TableSet()
        set.insertEverything()
        return set
    }()

    /// The schema table, to which every change of the schema writes.
    static let schemaTable = "sqlite_master"

    var isEmpty: Bool { names.isEmpty && !isEverything }

    mutating func insert(_ name: String) {
        if !isEverything { names.insert(SQLText(name)) }
    }

    mutating func insertEverything() {
        isEverything = true
        names = []
    }

    mutating func formUnion(_ other: TableSet) {
        if other.isEverything { insertEverything() }
        if !isEverything { names.formUnion(other.names) }
    }

    func intersects(_ other: TableSet) -> Bool {
        if isEmpty || other.isEmpty { return false }
        if isEverything || other.isEverything { return true }
        return !names.isDisjoint(with: other.names)
    }
}
