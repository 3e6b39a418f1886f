/// Learns the columns of a record type, from its own coding.
enum Reflection {
    static func columns<R: Record>(of type: R.Type) throws(StoreError) -> [RecordColumn] {
        let columns =
            if let example = R.example {
                try columns(ofExample: example)
            } else {
                try columnsFromPlaceholders(type)
            }
        guard !columns.isEmpty else {
            throw StoreError(
                .misuse, "\(type) has no columns: it decodes no property",
                hint: "A record needs at least one property. If the type decodes them in another "
                    + "way, declare static var example: Self? with a record of the type.")
        }
        return columns
    }

    /// A value made of placeholders, or the type's example, that shows the layout of the type.
    static func dummy<R: Record>(_ type: R.Type) throws(StoreError) -> R {
        if let example = R.example { return example }
        return try make(type, RecordingDecoder())
    }

    static let exampleHint =
        "Conform the type of that property to Exemplified, or declare static var example: Self? "
        + "with a record of the type."

    private static func columnsFromPlaceholders<R: Record>(
        _ type: R.Type
    ) throws(StoreError) -> [RecordColumn] {
        let decoder = RecordingDecoder()
        _ = try make(type, decoder)
        return decoder.collector.columns
    }

    private static func make<R: Record>(
        _ type: R.Type, _ decoder: RecordingDecoder
    ) throws(StoreError) -> R {
        do {
            let value = try R(from: decoder)
            if let refusal = decoder.refusal { throw refusal }
            return value
        } catch {
            if let refusal = decoder.refusal { throw refusal }
            let place = decoder.collector.lastName.map { ", as far as \($0)" } ?? ""
            throw StoreError(
                .misuse, "\(type) cannot be made from placeholder values\(place)",
                hint: exampleHint, column: decoder.collector.lastName, cause: error)
        }
    }

    private static func columns<R: Record>(
        ofExample example: R
    ) throws(StoreError) -> [RecordColumn] {
        let encoder = RecordingEncoder()
        do {
            try example.encode(to: encoder)
        } catch {
            throw StoreError(.misuse, "the example of \(R.self) cannot be encoded", cause: error)
        }
        if let refusal = encoder.refusal { throw refusal }
        return encoder.collector.columns
    }
}
