/// A page that fails authentication, and the content that is lost with it.
public struct DamagedPage: Sendable, Hashable, CustomStringConvertible {
    /// The page's number, from 1; 0 if the WAL does not reveal it.
    public let number: Int
    /// The page's content, as far as the readable pages reveal it. Names a table or an index, never
    /// a value.
    public let content: PageContent

    init(_ number: Int, _ contents: [Int: PageContent]) {
        self.number = number
        content = contents[number] ?? .unknown
    }

    /// In words: `page 17: a leaf of table note`.
    public var description: String {
        number == 0 ? "a page whose number is unknown" : "page \(number): \(content)"
    }
}
