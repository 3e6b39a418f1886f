/// Finds out whether a type takes values of several kinds, as one for any JSON does: refused one,
/// such a type tries the next.
///
/// Of the kinds that it tries some are one and the same in a column: a Bool and an integer, a text
/// and the JSON of a list. A value of one would come back as one of the other.
final class UnionProbe: Decoder, SingleValueDecodingContainer {
    private enum Kind {
        case flag
        case structured
        /// A number, a text or a blob, which storage classes tell apart.
        case plain
    }

    private var kinds: Set<Kind> = []

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Whether only JSON keeps the type's values apart.
    static func isUnion<T: Decodable>(_ type: T.Type) -> Bool {
        let probe = UnionProbe()
        _ = try? T(from: probe)
        return probe.kinds.count > 1
    }

    private func refuse(_ type: Any.Type, _ kind: Kind) -> DecodingError {
        kinds.insert(kind)
        return .typeMismatch(type, .init(codingPath: [], debugDescription: "what else is it?"))
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        throw refuse(type, .structured)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw refuse([Any].self, .structured)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { false }

    // One generic method meets all requirements of the protocol: nothing here is hot.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if type == Bool.self { throw refuse(type, .flag) }
        throw refuse(type, ColumnShape.of(type)?.coding == .json ? .structured : .plain)
    }
}
