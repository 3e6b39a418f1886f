/// SQLite's storage class of a column's values that are not NULL.
enum Storage: Int32, Sendable {
    case integer
    case real
    case text
    case blob

    /// The type's name in CREATE TABLE, which gives the column the affinity of the same name.
    var sqlType: String {
        switch self {
        case .integer: "INTEGER"
        case .real: "REAL"
        case .text: "TEXT"
        case .blob: "BLOB"
        }
    }
}
