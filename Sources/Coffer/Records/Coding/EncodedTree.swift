#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Collects what a type encodes piece by piece under one key, and encodes it as one JSON text.
final class EncodedTree: Encodable {
    private enum Content {
        case nothing
        case value(any Encodable)
        case members([String: EncodedTree])
        case elements([EncodedTree])
    }

    private var content = Content.nothing

    func encode(to encoder: any Encoder) throws {
        switch content {
        case .nothing: _ = encoder.container(keyedBy: Name.self)
        case .value(let value):
            // Must go through a container, because `JSONEncoder` has its own forms for dates, data
            // and URLs.
            var container = encoder.singleValueContainer()
            try container.encode(value)
        case .members(let members):
            var container = encoder.container(keyedBy: Name.self)
            for (name, tree) in members { try container.encode(tree, forKey: Name(name)) }
        case .elements(let elements):
            var container = encoder.unkeyedContainer()
            for tree in elements { try container.encode(tree) }
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    // MARK: Growing

    /// A type may ask for the same container twice; the second one adds to the first.
    private func member(_ key: some CodingKey) -> EncodedTree { member(named: key.stringValue) }

    private func member(named name: String) -> EncodedTree {
        var members: [String: EncodedTree] = [:]
        if case .members(let known) = content { members = known }
        let tree = members[name] ?? EncodedTree()
        members[name] = tree
        content = .members(members)
        return tree
    }

    private func newElement() -> EncodedTree {
        let tree = EncodedTree()
        content = .elements(elements + [tree])
        return tree
    }

    private var elements: [EncodedTree] {
        if case .elements(let known) = content { known } else { [] }
    }

    private func set<T: Encodable>(_ value: T) { content = .value(value) }
    private func setNil() { set(Int?.none) }

    // MARK: Containers

    func keyed<Key: CodingKey>(by type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(tree: self))
    }

    func unkeyed() -> any UnkeyedEncodingContainer {
        content = .elements(elements)
        return Unkeyed(tree: self)
    }

    var encoder: any Encoder { Whole(tree: self) }

    private struct Whole: Encoder, SingleValueEncodingContainer {
        let tree: EncodedTree
        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }

        func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
            tree.keyed(by: type)
        }
        func unkeyedContainer() -> any UnkeyedEncodingContainer { tree.unkeyed() }
        func singleValueContainer() -> any SingleValueEncodingContainer { self }
        func encodeNil() { tree.setNil() }
        func encode<T: Encodable>(_ value: T) { tree.set(value) }
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let tree: EncodedTree
        var codingPath: [any CodingKey] { [] }

        func encodeNil(forKey key: Key) { tree.member(key).setNil() }
        func encode<T: Encodable>(_ value: T, forKey key: Key) { tree.member(key).set(value) }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            tree.member(key).keyed(by: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            tree.member(key).unkeyed()
        }

        func superEncoder() -> any Encoder { tree.member(named: "super").encoder }
        func superEncoder(forKey key: Key) -> any Encoder { tree.member(key).encoder }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let tree: EncodedTree
        var codingPath: [any CodingKey] { [] }
        var count: Int { tree.elements.count }

        func encodeNil() { tree.newElement().setNil() }
        func encode<T: Encodable>(_ value: T) { tree.newElement().set(value) }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) -> KeyedEncodingContainer<Nested> {
            tree.newElement().keyed(by: type)
        }

        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            tree.newElement().unkeyed()
        }

        func superEncoder() -> any Encoder { tree.newElement().encoder }
    }
}

/// Provides a decoder of a JSON text to a type that decodes its column piece by piece.
struct OpenedJSON: Decodable {
    private let decoder: any Decoder

    init(from decoder: any Decoder) {
        self.decoder = decoder
    }

    /// - Parameter name: The column, with which the coding paths of all errors begin.
    /// - Throws: `DecodingError` if `json` is not JSON.
    static func decoder(of json: Data, at name: String) throws -> any Decoder {
        // Checks the text by itself first, because `1, "b": 2` would fit into the object below.
        _ = try JSONText.decode(Self.self, from: json)
        let object =
            Data("{".utf8) + (try JSONText.data(name)) + Data(":".utf8) + json
            + Data("}".utf8)
        let row = try JSONText.decode(Self.self, from: object).decoder
        return try row.container(keyedBy: ColumnKey.self).superDecoder(forKey: .init(name))
    }

    struct ColumnKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(_ name: String) { stringValue = name }
        init(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }
}
