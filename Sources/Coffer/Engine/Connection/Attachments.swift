/// Objects that other parts of Coffer keep per connection, such as a record type's statements.
///
/// A verb asks for the same object again and again, so the last one is found without hashing. This
/// is a class, so that a lookup does not mutate the connection.
final class Attachments {
    private var values: [ObjectIdentifier: AnyObject] = [:]
    private var lastID: ObjectIdentifier?
    private var lastValue: AnyObject?
    /// The version of the schema that the objects were made for.
    private var schemaVersion: Int64?
    /// Whether that version was checked since the transaction began or last changed the schema.
    var isChecked = false

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
        isChecked = false
    }

    /// Removes all objects if `version` differs from the one of the last call, and remembers
    /// `version`. Sets `isChecked`.
    func check(against version: Int64) {
        if version != schemaVersion { removeAll() }
        schemaVersion = version
        isChecked = true
    }
}
