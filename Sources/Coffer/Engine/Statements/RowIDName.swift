/// The names by which SQL reaches the id of a row, each unless a column has it.
/// See <https://www.sqlite.org/lang_createtable.html#rowid>.
package enum RowIDName {
    package static let all = ["rowid", "_rowid_", "oid"]

    /// One that is free beside columns of these names, in lower case; `nil` if all are taken.
    package static func free(beside columns: some Collection<String>) -> String? {
        all.first { !columns.contains($0) }
    }
}
