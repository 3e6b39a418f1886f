/// What other rooms keep per connection, such as a record type's statements.
///
/// A verb asks for the same thing again and again, so the last one is found without hashing. A
/// class, so that looking changes nothing of the connection.
final class Attachments {
    private var values: [ObjectIdentifier: AnyObject] = [:]
    private var lastID: ObjectIdentifier?
    private var lastValue: AnyObject?

    subscript(id: ObjectIdentifier) -> AnyObject? {
        get {
            if lastID == id { return lastValue }
            return find(id)
        }
        set {
            values[id] = newValue
            lastID = id
            lastValue = newValue
        }
    }

    @inline(never)
    private func find(_ id: ObjectIdentifier) -> AnyObject? {
        guard let value = values[id] else { return nil }
        lastID = id
        lastValue = value
        return value
    }

    func removeAll() {
        values.removeAll()
        lastID = nil
        lastValue = nil
    }
}
