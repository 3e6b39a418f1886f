/// The text of a CREATE TABLE in a file's schema, taken apart far enough to rename or drop columns.
///
/// SQLite 3.15 cannot do either. SQLite reads the new text again, and `TableRemake` compares what
/// it found with the old table, so a text that was understood wrongly is an error.
struct TableText {
    /// A part between two commas: a column, or one or more constraints of the table.
    struct Item {
        /// Positions of its tokens.
        let tokens: Range<Int>
        /// The column's name; `nil` for constraints.
        let column: String?
    }

    /// A place that names a column.
    struct Mention {
        enum Place: Equatable {
            /// The column's own definition.
            case definition
            /// A list of columns of a PRIMARY KEY or UNIQUE.
            case key
            /// The columns of a FOREIGN KEY.
            case foreignKey
            /// A CHECK.
            case check
            /// The expression of a generated column.
            case generated
            /// Columns of another table, or of this one, after REFERENCES.
            case parent(String)

            var isExpression: Bool { self == .check || self == .generated }
        }

        let token: Int
        let item: Int
        let place: Place
    }

    let text: String
    let tokens: [SQLToken]
    /// The position of the table's name.
    let name: Int
    let items: [Item]
    private(set) var mentions: [Mention] = []
    /// The bytes of each `table.` in front of a column in an expression, and its item.
    private var qualifiers: [(range: Range<Int>, item: Int)] = []

    /// Whether an expression names the table itself.
    var isQualified: Bool { !qualifiers.isEmpty }

    /// `nil` for a text that is not a CREATE TABLE with a list of columns.
    init?(_ text: String) {
        self.text = text
        tokens = SQLToken.tokens(of: text)
        guard tokens.count > 5, tokens[0].isWord("create"), tokens[1].isWord("table") else {
            return nil
        }
        let tokens = tokens
        name = tokens[3].isSign(".") ? 4 : 2
        guard tokens.indices.contains(name + 1), tokens[name + 1].isSign("("),
            let end = Self.end(of: name + 1, tokens)
        else { return nil }
        items = Self.items(tokens, from: name + 2, to: end)
        for item in items.indices { find(in: item) }
    }

    /// The position of the parenthesis that closes the one at `start`.
    private static func end(of start: Int, _ tokens: [SQLToken]) -> Int? {
        var depth = 0
        for position in start..<tokens.count {
            if tokens[position].isSign("(") { depth += 1 }
            if tokens[position].isSign(")") {
                depth -= 1
                if depth == 0 { return position }
            }
        }
        return nil
    }

    private static func items(_ tokens: [SQLToken], from start: Int, to end: Int) -> [Item] {
        var items: [Item] = []
        var depth = 0
        var first = start
        for position in start...end {
            if depth == 0, position == end || tokens[position].isSign(",") {
                if position > first {
                    let isConstraint = tokens[first].isWord(
                        "constraint", "primary", "unique", "check", "foreign")
                    items.append(
                        Item(
                            tokens: first..<position,
                            column: isConstraint ? nil : tokens[first].name))
                }
                first = position + 1
            } else if tokens[position].isSign("(") {
                depth += 1
            } else if tokens[position].isSign(")") {
                depth -= 1
            }
        }
        return items
    }

    // MARK: Mentions

    /// Finds the places in an item that name columns.
    private mutating func find(in item: Int) {
        var position = items[item].tokens.lowerBound
        let end = items[item].tokens.upperBound
        if items[item].column != nil {
            mentions.append(Mention(token: position, item: item, place: .definition))
            position += 1
        }
        var place: Mention.Place?
        while position < end {
            let token = tokens[position]
            if token.isSign("(") {
                let close = Self.end(of: position, tokens) ?? end
                if let place { find(position + 1..<close, item, place) }
                (place, position) = (nil, close + 1)
                continue
            }
            position += 1
            if token.isWord("primary", "unique") {
                place = .key
            } else if token.isWord("foreign") {
                place = .foreignKey
            } else if token.isWord("check") {
                place = .check
            } else if token.isWord("as") {
                place = .generated
            } else if token.isWord("references"), position < end {
                place = .parent(tokens[position].name)
                position += 1
            } else if token.isWord("default"), !tokens[position - 2].isWord("set") {
                position = endOfDefault(position)
                place = nil
            } else if token.isWord("constraint", "collate", "match", "on") {
                // A name follows, or a word that begins nothing.
                position += 1
                place = nil
            } else if !token.isWord("key", "always") {
                place = nil
            }
        }
    }

    private func endOfDefault(_ start: Int) -> Int {
        guard start < tokens.count else { return start }
        if tokens[start].isSign("(") { return (Self.end(of: start, tokens) ?? start) + 1 }
        let isSigned = tokens[start].isSign("+") || tokens[start].isSign("-")
        return start + (isSigned ? 2 : 1)
    }

    /// Finds the columns in a list or an expression.
    private mutating func find(_ range: Range<Int>, _ item: Int, _ place: Mention.Place) {
        let isList = !place.isExpression
        for position in range {
            let token = tokens[position]
            guard token.isName || isList && token.kind == .text else { continue }
            if position > 0, tokens[position - 1].isWord("collate", "as") { continue }
            let isBeforeSign = position + 1 < range.upperBound
            if isBeforeSign, tokens[position + 1].isSign("(") { continue }
            if isBeforeSign, tokens[position + 1].isSign(".") {
                if token.name.isSameIdentifier(as: tokens[name].name) {
                    let end = tokens[position + 1].range.upperBound
                    qualifiers.append((token.range.lowerBound..<end, item))
                }
                continue
            }
            mentions.append(Mention(token: position, item: item, place: place))
        }
    }

    /// The mentions of a column of this table, those of self-references included.
    func mentions(of column: String) -> [Mention] {
        let table = tokens[name].name
        return mentions.filter { mention in
            guard tokens[mention.token].name.isSameIdentifier(as: column) else { return false }
            guard case .parent(let parent) = mention.place else { return true }
            return parent.isSameIdentifier(as: table)
        }
    }

    // MARK: Editing

    /// The text of a table with another name, in quotes, and with columns of other names.
    ///
    /// - Parameters:
    ///   - quotedName: The new name, in quotes.
    ///   - names: New names of columns by the old names in lower case of ASCII.
    ///   - items: Positions of items to leave out.
    func sql(
        named quotedName: String, renaming names: [String: String] = [:],
        without dropped: Set<Int> = []
    ) throws(StoreError) -> String {
        var edited = EditedSQL(text)
        edited.replace(tokens[name].range, by: quotedName)
        for qualifier in qualifiers where !dropped.contains(qualifier.item) {
            edited.replace(qualifier.range, by: "")
        }
        try rename(names, ofParent: tokens[name].name, without: dropped, &edited)
        for item in dropped { edited.replace(range(ofDropped: item, dropped), by: "") }
        return try edited.result()
    }

    /// The text with other names for columns of a table that it refers to.
    func sql(
        named quotedName: String, renaming names: [String: String], ofParent parent: String
    ) throws(StoreError) -> String {
        var edited = EditedSQL(text)
        edited.replace(tokens[name].range, by: quotedName)
        for qualifier in qualifiers { edited.replace(qualifier.range, by: "") }
        for mention in mentions {
            guard case .parent(let table) = mention.place, table.isSameIdentifier(as: parent),
                let new = names[tokens[mention.token].name.asciiLowercased]
            else { continue }
            edited.replace(tokens[mention.token].range, by: try new.quotedIdentifier())
        }
        return try edited.result()
    }

    private func rename(
        _ names: [String: String], ofParent parent: String, without dropped: Set<Int>,
        _ edited: inout EditedSQL
    ) throws(StoreError) {
        for mention in mentions where !dropped.contains(mention.item) {
            if case .parent(let table) = mention.place, !table.isSameIdentifier(as: parent) {
                continue
            }
            let token = tokens[mention.token]
            guard let new = names[token.name.asciiLowercased],
                !token.mayBeValue || !mention.place.isExpression
            else { continue }
            edited.replace(tokens[mention.token].range, by: try new.quotedIdentifier())
        }
    }

    /// The bytes of an item with the comma before it, or after it if all items before are dropped.
    private func range(ofDropped item: Int, _ dropped: Set<Int>) -> Range<Int> {
        let found = items[item].tokens
        let (start, end) = (tokens[found.lowerBound].range, tokens[found.upperBound - 1].range)
        if (0..<item).allSatisfy({ dropped.contains($0) }) {
            return start.lowerBound..<tokens[found.upperBound].range.upperBound
        }
        return tokens[found.lowerBound - 1].range.lowerBound..<end.upperBound
    }
}
