/// The memory layout of a record type's stored properties, and the column of each of them.
///
/// A value's mirror lists the properties in the order of their declaration. The layout rule of
/// Swift structs gives their offsets: each starts at the next multiple of its alignment. The sum is
/// checked against the type's size. A trial finds a property's column: with one column's
/// placeholder changed, exactly the property of that column differs. Where the trial finds none,
/// the column of the same name is taken.
struct RecordLayout: Sendable {
    struct Property: Sendable {
        let label: String?
        let type: Any.Type
        let offset: Int
        var column: Int?
    }

    /// In the order of their declaration; empty if the layout cannot be determined.
    private(set) var properties: [Property] = []

    /// The column of the stored property with this offset and type, if there is exactly one.
    ///
    /// The type must match too, because a key path into a nested struct may have the same offset.
    func column(offset: Int, type: Any.Type) -> Int? {
        let found = properties.filter { $0.offset == offset && $0.type == type }
        return found.count == 1 ? found[0].column : nil
    }

    init<R: Record>(_ type: R.Type, columns: [RecordColumn]) throws(StoreError) {
        // An example's values are not placeholders, so there is nothing to compare with.
        self.init(
            of: try Reflection.dummy(type), columns: columns, hasPlaceholders: R.example == nil)
    }

    /// - Parameters:
    ///   - value: Shows the layout of its type.
    ///   - columns: The columns of the type, or the keys of its JSON.
    ///   - hasPlaceholders: Whether a `RecordingDecoder` has made the value.
    init<T: Decodable>(of value: T, columns: [RecordColumn], hasPlaceholders: Bool = true) {
        guard let properties = Self.properties(of: value) else { return }
        self.properties = properties
        if hasPlaceholders { assignByTrial(value, columns) }
        assignByLabel(columns)
    }

    /// `nil` if the layout rule does not yield the type's size. That is so for a class, or for a
    /// property whose mirror does not show its declared type.
    private static func properties<T>(of value: T) -> [Property]? {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .struct, mirror.superclassMirror == nil else { return nil }
        var end = 0
        var properties: [Property] = []
        for child in mirror.children {
            let type = Swift.type(of: child.value)
            let (size, alignment) = sizeAndAlignment(of: type)
            // A property of size 0 takes no memory, and Swift reports offset 0 for it.
            let offset = size == 0 ? 0 : (end + alignment - 1) / alignment * alignment
            properties.append(Property(label: child.label, type: type, offset: offset))
            end = max(end, offset + size)
        }
        return end == MemoryLayout<T>.size ? properties : nil
    }

    static func sizeAndAlignment(of type: Any.Type) -> (Int, Int) {
        func measure<T>(_ type: T.Type) -> (Int, Int) {
            (MemoryLayout<T>.size, MemoryLayout<T>.alignment)
        }
        return _openExistential(type, do: measure)
    }

    /// Changes one column at a time and notes which property changed with it.
    private mutating func assignByTrial<T: Decodable>(_ dummy: T, _ columns: [RecordColumn]) {
        let before = Mirror(reflecting: dummy).children.map(\.value)
        for (position, column) in columns.enumerated() {
            let decoder = RecordingDecoder(alternate: column.name)
            guard let changed = try? T(from: decoder), decoder.isAlternated else { continue }
            let after = Mirror(reflecting: changed).children.map(\.value)
            guard after.count == before.count else { continue }
            // A property that cannot be compared counts as changed.
            let differing = before.indices.filter { Self.areEqual(before[$0], after[$0]) != true }
            guard differing.count == 1 else { continue }
            properties[differing[0]].column = position
        }
    }

    /// Gives a property that the trial did not resolve the column of the same name.
    private mutating func assignByLabel(_ columns: [RecordColumn]) {
        let taken = Set(properties.compactMap(\.column))
        for index in properties.indices where properties[index].column == nil {
            guard let label = properties[index].label,
                let position = columns.firstIndex(where: { $0.name == label }),
                !taken.contains(position)
            else { continue }
            properties[index].column = position
        }
    }

    /// `nil` for values that cannot be compared, even by their encoded form.
    private static func areEqual(_ first: Any, _ second: Any) -> Bool? {
        func compare<E: Equatable>(_ first: E) -> Bool { (second as? E) == first }
        func encoded<E: Encodable>(_ value: E) -> Value? {
            try? ScalarEncoder().encode(value: value)
        }
        if let first = first as? any Equatable { return compare(first) }
        guard let first = (first as? any Encodable).flatMap({ encoded($0) }),
            let second = (second as? any Encodable).flatMap({ encoded($0) })
        else { return nil }
        return first == second
    }
}

/// The place of a property in the rows of its table.
enum PropertyPlace {
    /// The column at a position.
    case column(Int)
    case json(JSONPlace)
}

extension RecordPlan {
    /// The index in `columns`, from 0, of the column that a key path names. Throws `.misuse` if it
    /// names none: it is neither a stored property nor in `static var columns`.
    func position<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> Int {
        if let position = try positionIfAny(of: path) { return position }
        throw noColumn(of: path)
    }

    /// The column that a key path names, or its place inside the JSON of a column.
    ///
    /// - Throws: As `position(of:)`, if it names neither.
    func place<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> PropertyPlace {
        if let position = try positionIfAny(of: path) { return .column(position) }
        if let place = try jsonPlace(of: path) { return .json(place) }
        throw noColumn(of: path)
    }

    /// The position; `nil` if the key path names no column.
    private func positionIfAny<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> Int? {
        if let name = R.columns[path] {
            guard let position = columns.firstIndex(where: { $0.name == name }) else {
                let names = columns.map(\.name)
                let near = name.nearest(among: names).map { "Did you mean \($0)? " } ?? ""
                throw StoreError(
                    .misuse,
                    "static var columns of \(typeName) gives \(String(reflecting: path)) the "
                        + "column \(name), and there is none of that name",
                    hint: near + "The columns are \(names.joined(separator: ", ")).",
                    table: table, column: name)
            }
            return position
        }
        let type = Swift.type(of: path).valueType
        guard let offset = MemoryLayout<R>.offset(of: path) else { return nil }
        return try currentLayout(R.self).column(offset: offset, type: type)
    }

    private func noColumn<R: Record>(of path: PartialKeyPath<R>) -> StoreError {
        StoreError(
            .misuse,
            "the key path \(String(reflecting: path)) names no column of \(typeName)",
            hint: "Only stored properties of the record itself have columns. Declare which one it "
                + "is: static var columns: [PartialKeyPath<\(typeName)>: String] "
                + "{ [\\.title: \"title_text\"] }. A condition on a value inside of JSON needs "
                + "static var jsonPaths where structs do not simply decode it.",
            table: table)
    }

    func currentLayout<R: Record>(_ type: R.Type) throws(StoreError) -> RecordLayout {
        if let known = layout.withLock({ $0 }) { return known }
        // Made outside the lock, because this runs the type's own code.
        let made = try RecordLayout(type, columns: columns)
        layout.withLock { $0 = made }
        return made
    }
}
