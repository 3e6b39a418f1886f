/// A property's type that Coffer cannot make from placeholders, with a value that it can use.
///
/// ```swift
/// struct Email: Codable, Exemplified {
///     let text: String
///     static var example: Email { Email("ada@example.org") }
///     init(from decoder: any Decoder) throws { … }   // refuses a text without an @
/// }
/// ```
///
/// Coffer learns the columns of a ``Record`` from a value that it makes of zeros and empty texts.
/// A type needs an example only if its `init(from:)` refuses these. Numbers, texts, enums,
/// collections and types made of them need none. Coffer never stores the example.
public protocol Exemplified: Decodable {
    /// Any value that the type accepts.
    static var example: Self { get }
}
