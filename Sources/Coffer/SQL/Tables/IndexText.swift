/// The text of a CREATE INDEX in a file's schema.
struct IndexText {
    private let text: String
    private let tokens: [SQLToken]
    /// Positions of tokens that name columns.
    private let mentions: [Int]

    /// `nil` for a text that is not a CREATE INDEX.
    init?(_ text: String) {
        self.text = text
        let tokens = SQLToken.tokens(of: text)
        self.tokens = tokens
        let isIndex =
            tokens.count > 5 && tokens[0].isWord("create")
            && tokens[1...2].contains { $0.isWord("index") }
        guard isIndex,
            let start = tokens.firstIndex(where: { $0.isSign("(") })
        else { return nil }
        var depth = 0
        var found: [Int] = []
        for position in start..<tokens.count {
            let token = tokens[position]
            if token.isSign("(") { depth += 1 }
            if token.isSign(")") { depth -= 1 }
            let before = tokens[position - 1]
            // SQLite takes a text for a name where it is a whole term of the list.
            let isTerm =
                token.kind == .text && depth == 1 && (before.isSign("(") || before.isSign(","))
            let isCall = position + 1 < tokens.count && tokens[position + 1].isSign("(")
            guard token.isName || isTerm, !before.isWord("collate", "as"), !isCall else {
                continue
            }
            found.append(position)
        }
        mentions = found
    }

    /// Whether an expression names a table in front of a column.
    func isQualified(by table: String) -> Bool {
        zip(tokens, tokens.dropFirst()).contains { name, sign in
            name.isName && sign.isSign(".") && name.name.isSameIdentifier(as: table)
        }
    }

    func mentions(_ column: String) -> Bool {
        mentions.contains { tokens[$0].name.isSameIdentifier(as: column) }
    }

    /// The text with other names for columns; the old names are in lower case of ASCII.
    func sql(renaming names: [String: String]) throws(StoreError) -> String {
        var edited = EditedSQL(text)
        for mention in mentions {
            guard let new = names[tokens[mention].name.asciiLowercased],
                !tokens[mention].mayBeValue
            else { continue }
            edited.replace(tokens[mention].range, by: try new.quotedIdentifier())
        }
        return try edited.result()
    }
}

/// The head of a CREATE TRIGGER in a file's schema.
struct TriggerText {
    enum Event: String {
        case insert
        case update
        case delete
    }

    let event: Event
    /// The columns after UPDATE OF; empty for all.
    private(set) var columns: [String] = []

    /// `nil` for a text that is not a CREATE TRIGGER.
    init?(_ text: String) {
        let tokens = SQLToken.tokens(of: text)
        guard tokens.count > 6, tokens[0].isWord("create"),
            let word = tokens.dropFirst().prefix(3).firstIndex(where: { $0.isWord("trigger") })
        else { return nil }
        // The name, which may be a keyword in quotes only, comes before the event.
        let found = tokens.indices.dropFirst(word + 2).first { position in
            tokens[position].isWord("insert", "update", "delete")
        }
        guard let found, let event = Event(rawValue: tokens[found].name.asciiLowercased) else {
            return nil
        }
        self.event = event
        guard event == .update, tokens[found + 1].isWord("of") else { return }
        columns = tokens[(found + 2)...].prefix { !$0.isWord("on") }
            .filter { !$0.isSign(",") }.map(\.name)
    }
}
