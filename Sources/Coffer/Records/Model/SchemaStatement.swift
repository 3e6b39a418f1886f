/// Statements of a declared trigger or view as text for the schema of a file, which takes no
/// arguments.
struct SchemaStatement {
    let typeName: String
    let table: String
    let connection: Connection

    /// The text of a statement, with its values in it.
    ///
    /// - Throws: `.misuse` for a function that another program does not have; `.mismatch` for a
    ///   value that cannot be written exactly; errors of a key path in it.
    func text(_ sql: SQL) throws(StoreError) -> String {
        let sql = try sql.checked(on: connection)
        guard sql.lists.isEmpty, sql.namedArguments == nil else {
            throw refusal("has named arguments, or more than 100 values", nil)
        }
        var arguments = sql.arguments[...]
        let tokens = SQLToken.tokens(of: sql.text)
        var edited = EditedSQL(sql.text)
        guard !sql.bindsPlainDate else {
            throw refusal(
                "has a date that counts from an unknown moment", SchemaExpression.dateHint)
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
            } else if token.isWord("fail", "rollback"), position > 0,
                tokens[position - 1].isWord("or") || tokens[position - 1].isSign("(")
            {
                throw refusal(
                    "uses \(token.name), which keeps a part of a failed change or ends the "
                        + "transaction", "Use ABORT.")
            } else if isCall(position, tokens) {
                try requireKnown(token)
            } else if token.isWord("regexp", "match") {
                throw refusal("uses \(token.name)", "Use operators that need no function.")
            }
        }
        guard arguments.isEmpty else {
            throw refusal("has a value within a text", "Leave the quotes around it out.")
        }
        return try edited.result()
    }

    /// Whether a function is called there: a name in front of a parenthesis that is neither that of
    /// a table nor that of a common table expression.
    private func isCall(_ position: Int, _ tokens: [SQLToken]) -> Bool {
        guard tokens[position].isName, position + 1 < tokens.count,
            tokens[position + 1].isSign("(")
        else { return false }
        if position > 0, tokens[position - 1].isWord("into", "with", "recursive") { return false }
        var depth = 0
        for next in (position + 1)..<tokens.count {
            if tokens[next].isSign("(") { depth += 1 }
            if tokens[next].isSign(")") { depth -= 1 }
            guard depth == 0 else { continue }
            let isNamed =
                next + 2 < tokens.count && tokens[next + 1].isWord("as")
                && tokens[next + 2].isSign("(")
            return !isNamed
        }
        return true
    }

    private func requireKnown(_ token: SQLToken) throws(StoreError) {
        let name = token.name.asciiLowercased
        let isKeyword = token.kind == .word && Self.keywords.contains(name)
        let isKnown = SchemaExpression.knows(name) || Self.functions.contains(name)
        guard !isKeyword, !isKnown else { return }
        throw refusal(
            "calls \(token.name), which other programs may not have",
            "Use functions of SQLite 3.15, or make it with SQL of your own.")
    }

    /// Functions that SQLite 3.15 has for statements only.
    private static let functions: Set = [
        "avg", "changes", "count", "group_concat", "last_insert_rowid", "raise", "sum", "total",
        "total_changes",
    ]

    /// Keywords of statements in front of a parenthesis.
    private static let keywords: Set = [
        "all", "as", "by", "conflict", "except", "exists", "filter", "from", "having", "intersect",
        "join", "limit", "offset", "on", "over", "select", "set", "union", "using", "values",
        "where",
    ]

    private func refusal(_ reason: String, _ hint: String?) -> StoreError {
        StoreError(
            .misuse, "a statement that \(typeName) declares \(reason)", hint: hint, table: table)
    }
}
