import Coffer
import Foundation

// A program that was compiled without names for reflection, or without its metadata: see
// `StrippedReflectionTests`, which builds it and knows what it prints.

enum Kind: String, Codable { case plain, bold }

/// A type as anyone writes it.
struct Note: Record, Equatable {
    enum CodingKeys: String, CodingKey {
        case id, rank, kind, tags, created
        case title = "title_text"
    }
    var id: Int
    var title: String
    var rank: Double?
    var kind: Kind
    var tags: [String]
    var created: Date
}

/// Declares which column is which.
struct Declared: Record, Equatable {
    static var columns: [PartialKeyPath<Declared>: String] {
        [\.id: "id", \.title: "title", \.created: "created"]
    }
    static var indexes: [Index<Self>] { [Index(\.title)] }
    static var encodings: [PartialKeyPath<Declared>: ColumnEncoding] {
        [\.created: .date(.iso8601)]
    }
    var id: Int
    var title: String
    var created: Date
}

struct Indexed: Record {
    static var indexes: [Index<Self>] { [Index(\.title)] }
    var id: Int
    var title: String
}

struct Encoded: Record {
    static var encodings: [PartialKeyPath<Encoded>: ColumnEncoding] { [\.id: .uuidText] }
    var id: UUID
}

struct Stored: Record, Equatable {
    static var access: RecordAccess { .storedProperties }
    var id: Int
    var title: String
    var rank: Double?
    var kind: Kind
}

struct Unknown: Record {
    struct Level: Codable {
        struct Unknown: Error {}
        var number: Int
        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            if number != 7 { throw Unknown() }
        }
    }
    var id: Int
    var level: Level
}

/// Prints the result of a step, or its error with what it says to declare.
func show(_ name: String, _ body: () throws -> Any) {
    do {
        print("\(name): \(try body())")
    } catch let error as StoreError {
        let hint = error.hint ?? ""
        let names = ["columns", "example"].filter { hint.contains("static var \($0)") }
        print("\(name): \(error.code), declare \(names.joined(separator: ", "))")
    } catch {
        print("\(name): \(type(of: error))")
    }
}

@main enum Reflection {
    static func main() throws {
        let store = try Store(.memory)
        let date = Date(timeIntervalSince1970: 1_700_000_000.5)
        let note = Note(id: 1, title: "a", rank: nil, kind: .bold, tags: ["x"], created: date)
        let declared = Declared(id: 1, title: "a", created: date)
        let stored = Stored(id: 1, title: "a", rank: 0.5, kind: .plain)
        try store.write { tx in
            show("plain") {
                try tx.insert(note)
                return try tx.fetch(Note.all) == [note] && tx.find(Note.self, 1) == note
            }
            show("condition") { try tx.count(Note.where(\.title == "a" && \.rank == nil)) }
            show("order") { try tx.fetch(Note.order(by: \.created)).count }
            show("partial") { try tx.updateIfPresent(note, only: \.title) }
            show("declared") {
                try tx.insert(declared)
                return try tx.fetch(Declared.where(\.title == "a")) == [declared]
            }
            show("declared text") {
                try tx.rows("SELECT created FROM declared")[0].get(0) as String
            }
            show("index") { try tx.create(Indexed.self) }
            show("encoding") { try tx.create(Encoded.self) }
            show("stored") {
                try tx.insert([stored])
                return try tx.fetch(Stored.all) == [stored]
            }
            show("access") { try Stored.accessReport().access }
            show("reason") { try Stored.accessReport().reason ?? "none" }
            show("unknown") { try tx.create(Unknown.self) }
        }
    }
}
