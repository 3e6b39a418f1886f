import Coffer
import Foundation

enum Level: Int, ValueConvertible { case low = 1 }
enum Kind: String, ValueConvertible { case note }
enum Colour: String { case red }
struct NoteID: RawRepresentable { var rawValue: Int64 }

/// Every value that can be bound.
func values(
    _ integer: Int, _ big: Int64, _ small: UInt8, _ flag: Bool, _ real: Double, _ single: Float,
    _ text: String, _ data: Data, _ bytes: [UInt8], _ date: Date, _ id: UUID, _ url: URL,
    _ decimal: Decimal, _ level: Level, _ kind: Kind, _ value: Value, _ any: any ValueConvertible
) -> [SQL] {
    [
        "SELECT \(integer), \(big), \(small), \(flag), \(real), \(single), \(text), \(data)",
        "SELECT \(bytes), \(date), \(id), \(url), \(decimal), \(level), \(kind), \(value), \(any)",
        "SELECT \(7), \(1.5), \("text"), \(true), \(Value.null), \(integer + 1), \(text.count)",
    ]
}

/// An optional of each of them.
func optionals(
    _ integer: Int?, _ big: Int64?, _ small: UInt8?, _ flag: Bool?, _ real: Double?,
    _ single: Float?, _ text: String?, _ data: Data?, _ bytes: [UInt8]?, _ date: Date?, _ id: UUID?,
    _ url: URL?, _ decimal: Decimal?, _ level: Level?, _ kind: Kind?, _ value: Value?
) -> [SQL] {
    [
        "SELECT \(integer), \(big), \(small), \(flag), \(real), \(single), \(text), \(data)",
        "SELECT \(bytes), \(date), \(id), \(url), \(decimal), \(level), \(kind), \(value)",
        "SELECT \(Int?.none), \(nil as String?), \(text?.count), \(integer.map { $0 + 1 })",
        "SELECT \(text ?? "none"), \(Optional(integer))",
    ]
}

/// Every interpolation with a label.
func labels(
    _ date: Date, _ optional: Date?, _ numbers: [Int], _ texts: [String], _ ids: [UUID?],
    _ name: String, _ other: SQL, _ number: Int?
) -> [SQL] {
    [
        "SELECT \(date, as: .iso8601), \(optional, as: .unixMilliseconds), \(nil, as: .iso8601)",
        "SELECT 1 WHERE 1 IN \(list: numbers) OR 'a' IN \(list: texts) OR 2 IN \(list: ids)",
        "SELECT \(identifier: name) FROM \(identifier: "note") WHERE \(other) AND \(SQL("1"))",
        "SELECT \("SELECT \(number)" as SQL), \(list: [nil, number]), \(list: [Int]())",
    ]
}

/// Enums and typed identifiers, which are bound as their raw values.
func rawValues(_ colour: Colour, _ optional: Colour?, _ id: NoteID, _ ids: [NoteID]) -> [SQL] {
    [
        "SELECT \(colour), \(optional), \(id), \(ids.first), \(Colour.red), \(list: ids)",
        "SELECT \(list: [Colour.red]), \(list: [Kind.note]), \(Colour(rawValue: "red"))",
    ]
}

/// Values in the form of a property's column.
func properties(_ text: String, _ optional: String?, _ date: Date?) -> [SQL] {
    [
        "SELECT \(text, for: \Note.title), \(optional, for: \Note.title)",
        "SELECT \(date, for: \Note.due), \(Date(), for: \Note.due), \(optional, for: \Note.title)",
    ]
}

/// The verbs take them as literals.
func verbs(_ tx: inout WriteTransaction, _ text: String?, _ id: UUID?) throws {
    try tx.execute("UPDATE note SET title = \(text) WHERE id IS \(id)")
    _ = try tx.rows("SELECT * FROM note WHERE title IS \(text)")
    _ = Note.where(.sql("title IS \(text)"))
}

struct Note: Record {
    var id: Int
    var title: String
    var due: Date?
}
