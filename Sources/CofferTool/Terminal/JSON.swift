import Foundation

/// JSON as every verb writes it: one line, sorted keys. Documentation/json.md describes each field.
enum JSON {
    /// The version of the description. It rises if a field goes or changes its meaning, not if one
    /// is added.
    static let schema = 1

    /// A report, or whatever else is one object on its stream, with the version.
    static func object(_ content: some Encodable) -> String {
        line(Versioned(content: content))
    }

    static func line(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        guard let data = try? encoder.encode(value) else { return "{}" }
        return JSONValue.harmless(String(decoding: data, as: UTF8.self))
    }

    private struct Versioned<Content: Encodable>: Encodable {
        let content: Content

        private enum Key: CodingKey { case schema }

        func encode(to encoder: any Encoder) throws {
            try content.encode(to: encoder)
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(JSON.schema, forKey: .schema)
        }
    }
}

/// A path as the user gave it, and absolute in JSON, which another process in another folder may
/// read.
struct ReportedPath: Codable, CustomStringConvertible {
    let description: String

    init(_ path: String) {
        description = path
    }

    init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(String.self))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(absolute)
    }

    /// The text behind the path, unless it names the path itself.
    func before(_ text: String) -> String {
        if text.isEmpty { return description }
        return text.contains(description) ? text : "\(description): \(text)"
    }

    var absolute: String {
        guard !description.hasPrefix("/") else { return description }
        var rest = description[...]
        while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
        let folder = FileManager.default.currentDirectoryPath
        // The folder of the process was removed.
        guard !folder.isEmpty else { return description }
        return folder + (folder.hasSuffix("/") ? "" : "/") + rest
    }
}
