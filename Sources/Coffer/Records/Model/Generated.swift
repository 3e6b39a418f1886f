import CSQLCipher

/// A column whose values the file computes from the other columns of the row.
///
/// ```swift
/// static var generated: [Generated<Self>] { [Generated(\.total, sql: "price * count")] }
/// ```
///
/// The property is read as any other, in conditions, orders and indexes too. A write leaves it out:
/// the value that a record has is not stored, and one of these properties to `update(_:only:)` or
/// `set` is `.misuse`. Needs SQLCipher 4, and SQLCipher 3 cannot read a file with such a column at
/// all: see <https://www.sqlite.org/gencol.html>.
public struct Generated<R: Record>: Sendable {
    let path: PartialKeyPath<R> & Sendable
    let expression: SQL
    let isStored: Bool

    /// Describes a computed column.
    ///
    /// Every program that writes the table computes it, so the expression calls functions that
    /// SQLite 3.15 has by itself, and no others.
    ///
    /// - Parameters:
    ///   - path: The property, which is not part of the key.
    ///   - expression: SQL over the other columns of the table. `\( )` inserts a value.
    ///   - isStored: Whether the file keeps the values, rather than computing them at each reading.
    ///     `create` cannot add such a column to a table that exists.
    public init(
        _ path: PartialKeyPath<R> & Sendable, sql expression: SQL, isStored: Bool = false
    ) {
        (self.path, self.expression, self.isStored) = (path, expression, isStored)
    }
}

/// How the file computes a column.
struct GeneratedExpression: Sendable {
    let sql: SQL
    let isStored: Bool
}

extension Record {
    /// No computed columns.
    public static var generated: [Generated<Self>] { [] }
}

extension RecordPlan {
    /// Marks the columns that the type declares as computed.
    static func generate<R: Record>(
        _ columns: [RecordColumn], as type: R.Type
    ) throws(StoreError) -> [RecordColumn] {
        let declared = R.generated
        guard !declared.isEmpty else { return columns }
        let plain = try plain(columns, of: type)
        var columns = columns
        for generated in declared {
            let position = try plain.position(of: generated.path)
            guard !plain.keyPositions.contains(position) else {
                throw StoreError(
                    .misuse, "static var generated of \(plain.typeName) names a part of the key",
                    table: plain.table, column: columns[position].name)
            }
            columns[position].generated = GeneratedExpression(
                sql: generated.expression, isStored: generated.isStored)
        }
        guard columns.contains(where: { $0.generated == nil }) else {
            throw StoreError(
                .misuse, "static var generated of \(plain.typeName) names all columns",
                table: plain.table)
        }
        return columns
    }

    /// Positions of the columns that the file computes.
    var generatedPositions: Set<Int> {
        Set(columns.indices.filter { columns[$0].generated != nil })
    }

    /// - Throws: `.misuse` if a column is computed by the file.
    func requireSettable(_ position: Int) throws(StoreError) {
        guard columns[position].generated != nil else { return }
        throw StoreError(
            .misuse, "\(columns[position].name) is computed by the file",
            hint: "Set the columns that it is computed from.", table: table,
            column: columns[position].name)
    }

    /// - Throws: `.unsupported` if a column is computed by the file, on SQLCipher 3.
    func requireEngineForGenerated() throws(StoreError) {
        guard sqlite3_libversion_number() < 3_031_000,
            let column = columns.first(where: { $0.generated != nil })
        else { return }
        throw StoreError(
            .unsupported, "\(column.name) is computed by the file, which needs SQLCipher 4",
            hint: "Use a view: static var view.", table: table, column: column.name)
    }
}

extension GeneratedExpression {
    /// The clause of the column's definition.
    func clause(_ schema: SchemaExpression) throws(StoreError) -> String {
        "AS (\(try schema.text(sql))) \(isStored ? "STORED" : "VIRTUAL")"
    }

    /// The clause that a CREATE TABLE has for a column, as tokens; `nil` if it has none.
    static func signature(of column: String, in table: String) -> [SQLText]? {
        guard let text = TableText(table),
            let item = text.items.first(where: {
                $0.column?.isSameIdentifier(as: column) == true
            })
        else { return nil }
        let tokens = text.tokens[item.tokens]
        var depth = 0
        for position in tokens.indices.dropFirst() {
            let isFirst = depth == 0 && tokens[position].isWord("as")
            if tokens[position].isSign("(") { depth += 1 }
            if tokens[position].isSign(")") { depth -= 1 }
            guard isFirst, position + 1 < tokens.endIndex, tokens[position + 1].isSign("(") else {
                continue
            }
            let group = tokens[(position + 1)...].prefix { token in
                if token.isSign("(") { depth += 1 }
                if token.isSign(")") { depth -= 1 }
                return depth > 0
            }
            let end = group.endIndex + 1
            let isStored = end < tokens.endIndex && tokens[end].isWord("stored")
            return SchemaExpression.signature(group.dropFirst())
                + [SQLText(isStored ? "stored" : "virtual")]
        }
        return nil
    }

    /// The same of the clause that the type declares.
    func signature(_ schema: SchemaExpression) throws(StoreError) -> [SQLText] {
        SchemaExpression.signature(try schema.text(sql))
            + [SQLText(isStored ? "stored" : "virtual")]
    }
}
