import Synchronization

extension RecordPlan {
    /// The place of a property of a struct that is stored as JSON; `nil` if the key path names
    /// none.
    ///
    /// - Throws: `.misuse` if `static var jsonPaths` names a column that is not JSON.
    func jsonPlace<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> JSONPlace? {
        let type = Swift.type(of: path).valueType
        if let declared = R.jsonPaths[path] { return try place(declared, type) }
        guard let offset = MemoryLayout<R>.offset(of: path) else { return nil }
        let key = JSONPlaces.Key(offset: offset, type: ObjectIdentifier(type))
        if let known = jsonPlaces.known(key) { return place(known, type) }
        // Made outside the lock, because this runs the type's own code.
        let found = try find(R.self, offset, type)
        jsonPlaces.keep(found, key)
        return place(found, type)
    }

    private func place(_ found: JSONPlaces.Found, _ type: Any.Type) -> JSONPlace? {
        guard let (position, steps) = found else { return nil }
        return JSONPlace(plan: self, position: position, steps: steps, type: type)
    }

    private func place(_ path: JSONPath, _ type: Any.Type) throws(StoreError) -> JSONPlace {
        guard let position = columns.firstIndex(where: { $0.name == path.column }),
            columns[position].isJSON
        else {
            let names = columns.filter(\.isJSON).map(\.name).joined(separator: ", ")
            throw StoreError(
                .misuse,
                "static var jsonPaths of \(typeName) names \(path.column), which is not a column "
                    + "of JSON",
                hint: names.isEmpty
                    ? "The type has none. A nested struct, an array or a dictionary is JSON."
                    : "The columns of JSON are \(names).",
                table: table, column: path.column)
        }
        return JSONPlace(plan: self, position: position, steps: path.steps, type: type)
    }

    private func find<R: Record>(
        _ type: R.Type, _ offset: Int, _ leaf: Any.Type
    ) throws(StoreError) -> JSONPlaces.Found {
        for property in try currentLayout(type).properties(at: offset) {
            // A struct that decodes itself from the record's own keys has no column.
            guard let position = property.column, columns[position].isJSON,
                columns[position].type == property.type,
                let nested = property.type as? any Codable.Type,
                let steps = steps(nested, offset - property.offset, leaf)
            else { continue }
            return (position, steps)
        }
        return nil
    }

    /// The keys from a value to its property at an offset; `nil` if they are unknown.
    private func steps<T: Codable>(
        _ type: T.Type, _ offset: Int, _ leaf: Any.Type
    ) -> [JSONPath.Step]? {
        let decoder = RecordingDecoder()
        guard let dummy = try? T(from: decoder), decoder.refusal == nil else { return nil }
        let columns = decoder.collector.columns
        let layout = RecordLayout(of: dummy, columns: columns)
        for property in layout.properties(at: offset) {
            guard let position = property.column else { continue }
            let key = columns[position].name
            if property.offset == offset, property.type == leaf {
                return isKey(key, of: property, type) ? [.key(key)] : nil
            }
            guard let nested = property.type as? any Codable.Type,
                columns[position].type == property.type, isKey(key, of: property, type),
                let inside = steps(nested, offset - property.offset, leaf)
            else { continue }
            return [.key(key)] + inside
        }
        return nil
    }

    /// Whether a type encodes a property, as it is, under a key.
    private func isKey<T: Codable>(
        _ key: String, of property: RecordLayout.Property, _ type: T.Type
    ) -> Bool {
        func json<E: Encodable>(_ value: E) -> [UInt8]? {
            (try? JSONText.data(value)).map(Array.init)
        }
        for decoder in [RecordingDecoder(), RecordingDecoder(alternate: key)] {
            guard let sample = try? T(from: decoder), let object = json(sample) else { continue }
            let value =
                Mirror(reflecting: sample).children
                .first { $0.label == property.label }?.value as? any Encodable
            guard let value, let alone = json(value) else { return false }
            let expected = try? JSONScanner.value(of: alone)
            let found = try? JSONScanner.value(of: object, [.key(key)])
            guard found == expected else { return false }
        }
        return true
    }
}

/// The places of key paths that were looked for in a record type.
final class JSONPlaces: Sendable {
    struct Key: Hashable {
        let offset: Int
        let type: ObjectIdentifier
    }

    typealias Found = (position: Int, steps: [JSONPath.Step])?

    private let places = Mutex<[Key: Found]>([:])

    func known(_ key: Key) -> Found? { places.withLock { $0[key] } }

    func keep(_ found: Found, _ key: Key) { places.withLock { $0[key] = .some(found) } }
}

extension RecordColumn {
    /// Whether its texts are JSON.
    var isJSON: Bool { coding == .json && encoding == nil }
}

extension RecordLayout {
    /// The stored properties that have a byte at an offset.
    fileprivate func properties(at offset: Int) -> [Property] {
        properties.filter {
            $0.offset <= offset && offset < $0.offset + Self.sizeAndAlignment(of: $0.type).0
        }
    }
}
