extension StoredProperties {
    /// The elements of a tuple as properties, each read from a column of its own.
    ///
    /// - Parameters:
    ///   - elements: The type of each element, and the form of its values.
    ///   - positions: The position of each element's column in `columnNames`.
    /// - Throws: `.unsupported` for a tuple with another layout in memory.
    convenience init<Values>(
        tuple type: Values.Type, of elements: [(type: any Codable.Type, column: RecordColumn)],
        at positions: [Int], columnNames: [String], _ plan: RecordPlan
    ) throws(StoreError) {
        var properties: [StoredProperty] = []
        var coders: [(any StoredCoder)?] = []
        var end = 0
        for (element, position) in zip(elements, positions) {
            // Swift lays out a tuple as it does a struct: see `RecordLayout`.
            let (size, alignment) = RecordLayout.sizeAndAlignment(of: element.type)
            let offset = (end + alignment - 1) / alignment * alignment
            end = offset + size
            let (property, coder) = StoredProperty.of(
                element.type, element.column, at: position, offset: offset)
            properties.append(property)
            coders.append(coder)
        }
        guard end == MemoryLayout<Values>.size else {
            throw StoreError(
                .unsupported, "\(type) has another layout in memory than its types tell",
                hint: "Use fetch(_:as:) with a type of your own.", table: plan.table)
        }
        self.init(properties, coders, columnNames: columnNames)
    }
}
