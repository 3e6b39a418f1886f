/// One column of a record's table.
struct RecordColumn: Sendable {
    let name: String
    /// The Swift type, without `Optional`.
    let type: Any.Type
    var storage: Storage
    var coding: ColumnCoding
    var isNullable: Bool
    /// The kind of value that its type decodes first.
    let kind: ValueKind
    /// The form of the stored values, where the type declares one.
    var encoding: ColumnEncoding?
    /// How the file computes the values; `nil` for a column that records are written to.
    var generated: GeneratedExpression?
}

/// Collects columns while a type decodes or encodes itself, in the order of their first mention.
struct ColumnCollector {
    private struct Entry {
        let name: String
        var type: Any.Type?
        var shape: ColumnShape?
        var isNullable = false
    }

    private var entries: [Entry] = []
    private var positions: [String: Int] = [:]
    /// The last mentioned name, for the error if the type's coding fails.
    private(set) var lastName: String?

    /// Notes that a column exists. It is nullable if the type tests for its presence.
    mutating func mention(_ name: String, isNullable: Bool = false) {
        lastName = name
        let position = positions[name] ?? entries.count
        if position == entries.count {
            entries.append(Entry(name: name))
            positions[name] = position
        }
        if isNullable { entries[position].isNullable = true }
    }

    /// Notes what a column holds.
    mutating func note(_ name: String, _ type: Any.Type, _ shape: ColumnShape?, isNullable: Bool) {
        mention(name, isNullable: isNullable)
        guard let position = positions[name], entries[position].shape == nil, let shape else {
            return
        }
        entries[position].type = type
        entries[position].shape = shape
    }

    /// The columns. A name that the type tested for but never decoded has no type and is left out.
    var columns: [RecordColumn] {
        entries.compactMap { entry in
            guard let type = entry.type, let shape = entry.shape else { return nil }
            return RecordColumn(
                name: entry.name, type: type, storage: shape.storage, coding: shape.coding,
                isNullable: entry.isNullable || shape.isNullable, kind: shape.kind)
        }
    }
}
