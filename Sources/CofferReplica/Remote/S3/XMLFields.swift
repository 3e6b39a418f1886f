import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

/// The text of each element of an answer in XML, by its path: `Error/Code`.
///
/// The system's parser reads it. It loads nothing that the text refers to.
struct XMLFields {
    /// All texts of a path, in order.
    private let texts: [String: [String]]

    /// `nil` if the bytes are no whole document.
    init?(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return nil }
        let reader = Reader()
        let parser = XMLParser(data: Data(bytes))
        parser.shouldResolveExternalEntities = false
        parser.delegate = reader
        guard parser.parse() else { return nil }
        texts = reader.texts
    }

    subscript(path: String) -> String? { texts[path]?.first }

    func all(_ path: String) -> [String] { texts[path] ?? [] }

    private final class Reader: NSObject, XMLParserDelegate {
        var texts: [String: [String]] = [:]
        private var path: [String] = []
        private var text = ""

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?,
            qualifiedName: String?, attributes: [String: String]
        ) {
            path.append(name)
            text = ""
            // No answer of a service is this deep.
            if path.count > 16 { parser.abortParsing() }
        }

        func parser(_ parser: XMLParser, foundCharacters string: String) {
            text += string
        }

        func parser(
            _ parser: XMLParser, didEndElement name: String, namespaceURI: String?,
            qualifiedName: String?
        ) {
            texts[path.joined(separator: "/"), default: []].append(text)
            if !path.isEmpty { path.removeLast() }
            text = ""
        }
    }
}
