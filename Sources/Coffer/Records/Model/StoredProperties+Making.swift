import Synchronization

extension StoredProperties {
    /// Whether a type's stored properties can be used, or why not.
    enum Finding: Sendable {
        case usable(StoredProperties)
        case unusable(String)

        var usable: StoredProperties? {
            if case .usable(let properties) = self { properties } else { nil }
        }
    }

    /// The finding about a type, from the process-wide cache.
    static func of<R: Record>(
        _ type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) -> Finding {
        if let known = findings.withLock({ $0[ObjectIdentifier(type)] }) { return known }
        // Made outside the lock, because this runs the type's own code.
        let found = try find(type, plan)
        findings.withLock { $0[ObjectIdentifier(type)] = found }
        return found
    }

    private static let findings = Mutex<[ObjectIdentifier: Finding]>([:])

    private struct Obstacle: Error {
        let reason: String
    }

    private static func find<R: Record>(
        _ type: R.Type, _ plan: RecordPlan
    ) throws(StoreError) -> Finding {
        guard R.access == .storedProperties else {
            return .unusable("static var access does not ask for them")
        }
        if let reason = obstacle(type) { return .unusable(reason) }
        let layout = try RecordLayout(type, columns: plan.columns)
        guard !layout.properties.isEmpty else {
            return .unusable("the places of its properties are not what its mirror tells")
        }
        do throws(Obstacle) {
            let properties = try make(layout.properties, plan)
            if let reason = StoredTrial(type, plan, properties).obstacle() {
                return .unusable(reason)
            }
            return .usable(properties)
        } catch {
            return .unusable(error.reason)
        }
    }

    /// An obstacle that shows without a value of the type; `nil` if there is none.
    private static func obstacle<R: Record>(_ type: R.Type) -> String? {
        if type is AnyClass { return "it is a class" }
        if type is any CustomReflectable.Type { return "it has a mirror of its own" }
        if R.example != nil {
            return "its columns come from an example, and other values cannot be tried"
        }
        return nil
    }

    private static func make(
        _ found: [RecordLayout.Property], _ plan: RecordPlan
    ) throws(Obstacle) -> StoredProperties {
        var properties: [StoredProperty] = []
        var coders: [(any StoredCoder)?] = []
        for property in found {
            let name = property.label ?? "at byte \(property.offset)"
            guard let position = property.column else {
                throw Obstacle(reason: "the property \(name) has no column of its own")
            }
            let column = plan.columns[position]
            let wrapped = (property.type as? any OptionalValue.Type)?.wrapped
            guard column.type == wrapped ?? property.type else {
                throw Obstacle(
                    reason: "the property \(name) is coded as another type, \(column.type)")
            }
            guard column.isNullable == (wrapped != nil) else {
                throw Obstacle(
                    reason: "of the property \(name) and its column, only one can be nil")
            }
            guard let type = property.type as? any Codable.Type else {
                throw Obstacle(reason: "the property \(name) is not Codable")
            }
            let (made, coder) = StoredProperty.of(
                type, column, at: position, offset: property.offset)
            properties.append(made)
            coders.append(coder)
        }
        let columns = Set(properties.map(\.column))
        for (position, column) in plan.columns.enumerated()
        where !columns.contains(Int32(position)) || properties.count != plan.columns.count {
            throw Obstacle(reason: "the column \(column.name) is no stored property of its own")
        }
        return StoredProperties(properties, coders, columnNames: plan.columns.map(\.name))
    }
}

extension StoredProperty {
    /// A property of a type that is kept in a column, with the coder that it needs.
    static func of(
        _ type: any Codable.Type, _ column: RecordColumn, at position: Int, offset: Int
    ) -> (StoredProperty, (any StoredCoder)?) {
        let wrapped = (type as? any OptionalValue.Type)?.wrapped as? any Codable.Type
        let plain: any Codable.Type = wrapped ?? type
        let kind = column.encoding == nil ? kind(of: plain) : .coded
        let property = StoredProperty(
            kind: kind, isOptional: wrapped != nil, offset: offset, column: Int32(position),
            entry: RowEncoder.entry(position, column.storage))
        guard kind == .coded else { return (property, nil) }
        return (property, coder(plain, isOptional: wrapped != nil))
    }

    private static func coder<T: Codable>(_ type: T.Type, isOptional: Bool) -> any StoredCoder {
        isOptional ? OptionalPropertyCoder<T>() : PropertyCoder<T>()
    }
}
