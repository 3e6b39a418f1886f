/// SQL of a type's declaration as text for the schema of a file, which takes no arguments.
struct SchemaExpression {
    let plan: RecordPlan
    let connection: Connection
    /// Whether the table is about to be made, so that its dates count as in a new one.
    let isNew: Bool
    /// Whether the SQL may call Coffer's function for JSON, which no other program has.
    var isOnlyForCoffer = false

    /// The text of an expression over the columns of the type's own table.
    ///
    /// - Throws: `.misuse` for SQL that needs another table or a function that another program does
    ///   not have; `.mismatch` for a value that cannot be written exactly; errors of a condition
    ///   whose key path or value is unusable.
    func text(_ sql: SQL) throws(StoreError) -> String {
        var arguments = try values(of: sql)[...]
        let isForeign = sql.otherTables.contains { $0 !== plan }
        guard sql.lists.isEmpty, !isForeign, sql.namedArguments == nil else {
            throw refusal(
                "names another table, or more than 100 values",
                "Compare the table's own columns with values.")
        }
        let tokens = SQLToken.tokens(of: sql.text)
        var edited = EditedSQL(sql.text)
        guard !sql.bindsPlainDate else {
            throw refusal("has a date that counts from an unknown moment", Self.dateHint)
        }
        guard !SQLToken.hasComment(sql.text, tokens) else {
            throw refusal("has a comment", "Write it in Swift.")
        }
        for (position, token) in tokens.enumerated() {
            let next = position + 1 < tokens.count ? tokens[position + 1] : nil
            if token.isSign("?") {
                guard let argument = arguments.popFirst(), !token.isNumbered(by: next) else {
                    throw refusal("has a placeholder without an argument of its own", nil)
                }
                let literal = try connection.literal(argument)
                edited.replace(
                    token.range, by: token.spliced(literal ?? "NULL", in: sql.text))
            } else if token.isName, let next, next.isSign(".") {
                guard token.name.isSameIdentifier(as: plan.table) else {
                    throw refusal("names the table \(token.name)", nil)
                }
                edited.replace(token.range.lowerBound..<next.range.upperBound, by: "")
            } else if token.isName, let next, next.isSign("(") {
                try requireKnown(token)
            } else if token.kind == .quoted {
                // SQLite takes an unknown name in quotes for a text.
                try requireColumn(token.name)
            } else if token.isWord("regexp", "match", "select") {
                throw refusal(
                    "uses \(token.name)", "Use operators of SQLite that need no function.")
            }
        }
        guard arguments.isEmpty else {
            throw refusal("has a value within a text", "Leave the quotes around it out.")
        }
        return try edited.result()
    }

    static let dateHint =
        "Say what it is compared with: \\(date, for: \\Note.created), or convert it to a number."

    /// The arguments, with dates as the columns hold them.
    private func values(of sql: SQL) throws(StoreError) -> [Value] {
        guard isNew else { return try sql.checked(on: connection).arguments }
        var arguments = try sql.checked().arguments
        for date in sql.dates {
            let column = plan.columns.first { $0.name.isSameIdentifier(as: date.column) }
            guard column?.countsFrom2001IfNew == false else { continue }
            arguments[date.index] = arguments[date.index].countedFrom1970
        }
        return arguments
    }

    /// Functions that SQLite 3.15 has. The engine refuses an index of one whose result varies.
    private static let functions: Set = [
        "abs", "char", "coalesce", "glob", "hex", "ifnull", "instr", "length", "like", "lower",
        "ltrim", "max", "min", "nullif", "quote", "random", "randomblob", "replace", "round",
        "rtrim", "substr", "trim", "typeof", "unicode", "upper", "zeroblob",
        "date", "datetime", "julianday", "strftime", "time",
    ]

    /// Keywords in front of a parenthesis.
    private static let keywords: Set = [
        "and", "between", "case", "cast", "else", "escape", "glob", "in", "is", "isnull", "like",
        "not", "notnull", "or", "then", "when",
    ]

    /// A function of the program's own would make the table unusable for every other program.
    private func requireKnown(_ token: SQLToken) throws(StoreError) {
        let name = token.name.asciiLowercased
        let isKeyword = token.kind == .word && Self.keywords.contains(name)
        guard !isKeyword, !Self.functions.contains(name) else { return }
        if isOnlyForCoffer, name == JSONFunction.name { return }
        throw refusal(
            "calls \(token.name), which other programs may not have",
            "Use functions of SQLite 3.15, or make it with SQL of your own.")
    }

    /// Whether SQLite 3.15 has a function, or the name is a keyword of expressions, in lower case.
    static func knows(_ name: String) -> Bool {
        functions.contains(name) || keywords.contains(name)
    }

    private func requireColumn(_ name: String) throws(StoreError) {
        guard !plan.columns.contains(where: { $0.name.isSameIdentifier(as: name) }) else { return }
        throw refusal("names \(name), which is not a column", nil)
    }

    private func refusal(_ reason: String, _ hint: String?) -> StoreError {
        StoreError(
            .misuse, "an expression that \(plan.typeName) declares \(reason)", hint: hint,
            table: plan.table)
    }

    /// What two texts of the same meaning have in common: tokens without the case of names.
    static func signature(_ text: String) -> [SQLText] {
        signature(SQLToken.tokens(of: text)[...])
    }

    static func signature(_ tokens: ArraySlice<SQLToken>) -> [SQLText] {
        tokens.map { token in
            switch token.kind {
            case .word, .quoted, .literal: SQLText(token.name.asciiLowercased)
            case .text: SQLText("'\(token.name)")
            case .sign: SQLText(token.name)
            }
        }
    }

    /// The signature of what a CREATE INDEX says after the table's name.
    static func signature(ofIndex text: String) -> [SQLText] {
        let tokens = SQLToken.tokens(of: text)
        return signature(tokens.drop { !$0.isSign("(") })
    }

    /// The signatures of all CHECK clauses of a CREATE TABLE, with their parentheses.
    static func checks(of table: String) -> Set<[SQLText]> {
        let tokens = SQLToken.tokens(of: table)
        var found: Set<[SQLText]> = []
        for (position, token) in tokens.enumerated() where token.isWord("check") {
            var depth = 0
            let group = tokens[(position + 1)...].prefix { token in
                if token.isSign("(") { depth += 1 }
                if token.isSign(")") { depth -= 1 }
                return depth > 0
            }
            found.insert(signature(group.dropFirst()))
        }
        return found
    }
}
