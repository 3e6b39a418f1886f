extension StringProtocol {
    /// The text without the blanks and line ends around it.
    var trimmed: String {
        let text = drop(while: \.isWhitespace)
        let last = text.lastIndex { !$0.isWhitespace }
        return last.map { String(text[...$0]) } ?? ""
    }
}
