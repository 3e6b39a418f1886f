import CSQLCipher

/// The stored properties of a record type, in the order of declaration. They bind and make its
/// values without the type's own coding.
final class StoredProperties: Sendable {
    let properties: [StoredProperty]
    /// For the properties that need one.
    private let coders: [(any StoredCoder)?]
    private let columnNames: [String]
    /// Whether no property needs a coder. Then no user code runs.
    let isPlain: Bool

    /// - Parameter columnNames: The plan's column names, which `entry` numbers.
    init(
        _ properties: [StoredProperty], _ coders: [(any StoredCoder)?], columnNames: [String]
    ) {
        self.properties = properties
        self.coders = coders
        self.columnNames = columnNames
        isPlain = coders.allSatisfy { $0 == nil }
    }

    /// The same properties for rows whose columns have other positions or are partly missing.
    func moved(_ position: (String) -> Int32) -> StoredProperties {
        let moved = properties.map { property in
            var moved = property
            moved.column = position(columnNames[Int(property.entry >> 2)])
            return moved
        }
        return StoredProperties(moved, coders, columnNames: columnNames)
    }

    /// The properties of some of the plan's columns.
    func only(_ columns: Set<Int>) -> StoredProperties {
        let chosen = properties.indices.filter { columns.contains(Int(properties[$0].entry >> 2)) }
        return StoredProperties(
            chosen.map { properties[$0] }, chosen.map { coders[$0] }, columnNames: columnNames)
    }

    // MARK: Writing

    /// Binds all properties of a record, except properties that are `nil`.
    ///
    /// - Parameter record: A value of the type that this was made for.
    func bind(
        _ record: UnsafeRawPointer, _ state: UnsafeMutablePointer<BindingState>
    ) throws {
        try properties.withUnsafeBufferPointer { properties in
            for index in properties.indices {
                let property = properties[index]
                let place = record + property.offset
                if property.kind == .coded {
                    try coders[index]?.bind(place, property.entry, state.pointee.encoder)
                } else {
                    try property.bind(place, state)
                }
            }
        }
    }

    // MARK: Reading

    /// Initialises a record from a statement's current row. If this throws, the memory is
    /// uninitialised again.
    ///
    /// - Parameter record: Memory for a value of the type that this was made for.
    func initialize(
        _ record: UnsafeMutableRawPointer, _ state: UnsafePointer<RowState>
    ) throws {
        try initialize(record, state) { state.pointee.raw($0) }
    }

    /// The same, from the values that SQLite passes to a function during a step, one per column.
    /// `isPlain` must be true.
    func initialize(
        _ record: UnsafeMutableRawPointer, _ state: UnsafePointer<RowState>,
        values: UnsafeMutablePointer<OpaquePointer?>
    ) throws {
        try initialize(record, state) { values[Int($0)] }
    }

    @inline(__always)
    private func initialize(
        _ record: UnsafeMutableRawPointer, _ state: UnsafePointer<RowState>,
        _ value: (Int32) -> OpaquePointer?
    ) throws {
        try properties.withUnsafeBufferPointer { properties in
            var index = 0
            do {
                while index < properties.count {
                    let property = properties[index]
                    let place = record + property.offset
                    if property.kind == .coded || property.column < 0 {
                        try initialize(rare: index, place, state)
                    } else {
                        try property.initialize(place, value(property.column), state)
                    }
                    index &+= 1
                }
            } catch {
                deinitialize(record, count: index)
                throw error
            }
        }
    }

    @inline(never)
    private func initialize(
        rare index: Int, _ place: UnsafeMutableRawPointer, _ state: UnsafePointer<RowState>
    ) throws {
        let property = properties[index]
        let decoder = state.pointee.decoder
        guard property.column >= 0 || property.isOptional else {
            throw decoder.missing(columnNames[Int(property.entry >> 2)])
        }
        if let coder = coders[index] {
            try coder.initialize(place, property.column, decoder)
        } else {
            property.initializeToNil(place)
        }
    }

    @inline(never)
    private func deinitialize(_ record: UnsafeMutableRawPointer, count: Int) {
        for index in 0..<count {
            let place = record + properties[index].offset
            if let coder = coders[index] {
                coder.deinitialize(place)
            } else {
                properties[index].deinitialize(place)
            }
        }
    }
}
