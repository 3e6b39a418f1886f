/// SQL's names for the row id. A column of the same name hides one.
/// See <https://www.sqlite.org/lang_createtable.html#rowid>.
package enum RowIDName {
    package static let all = ["rowid", "_rowid_", "oid"]

    /// The first name that is not among `columns` (in lower case); `nil` if all of them are.
    package static func free(beside columns: some Collection<String>) -> String? {
        all.first { !columns.contains($0) }
    }
}
