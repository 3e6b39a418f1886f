/// Makes the name of a table out of the name of a type.
enum TableName {
    /// `DownloadItem` becomes `download_item`, `HTTPServer` `http_server`, `Box<Int>` `box_int`.
    static func of(_ type: Any.Type) -> String {
        var name = ""
        let characters = Array(String(describing: type))
        for (index, character) in characters.enumerated() {
            guard character.isLetter || character.isNumber else {
                if !name.isEmpty, name.last != "_" { name.append("_") }
                continue
            }
            if character.isUppercase, startsWord(characters, at: index), name.last != "_" {
                if !name.isEmpty { name.append("_") }
            }
            name += character.lowercased()
        }
        while name.last == "_" { name.removeLast() }
        return name
    }

    /// An upper-case letter starts a word after a lower-case one or a digit, and before a
    /// lower-case one: the S in `HTTPServer`.
    private static func startsWord(_ characters: [Character], at index: Int) -> Bool {
        guard index > 0 else { return false }
        let before = characters[index - 1]
        if before.isLowercase || before.isNumber { return true }
        return index + 1 < characters.count && characters[index + 1].isLowercase
    }
}
