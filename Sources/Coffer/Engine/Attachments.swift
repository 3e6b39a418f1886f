/// What other rooms keep per connection, such as a record type's statements.
///
/// A verb asks for the same thing again and again, so the last one is found without hashing.
struct Attachments {
    private var values: [ObjectIdentifier: AnyObject] = [:]
    private var lastID: ObjectIdentifier?
    private var lastValue: AnyObject?

    subscript(id: ObjectIdentifier) -> AnyObject? {
        mutating get {
            if lastID == id { return lastValue }
            guard let value = values[id] else { return nil }
            (lastID, lastValue) = (id, value)
            return value
        }
        set {
            values[id] = newValue
            (lastID, lastValue) = (newValue == nil ? nil : id, newValue)
        }
    }

    mutating func removeAll() {
        values.removeAll()
        (lastID, lastValue) = (nil, nil)
    }
}
