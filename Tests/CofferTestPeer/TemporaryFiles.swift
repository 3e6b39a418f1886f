import Foundation

@testable import Coffer

/// Puts more than the cache holds into a table, into a temporary one and into a sort, and returns
/// the files that were open during that, except the database and its companions.
func temporaryFiles(_ connection: Connection, of path: String) throws -> Set<String> {
    // Files that the parent process has left open do not count.
    let before = openFiles()
    var found = Set<String>()
    try connection.execute("CREATE TABLE kept(v)")
    try connection.execute("CREATE TEMP TABLE temporary(v)")
    for table in ["kept", "temporary"] {
        try connection.transaction {
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
                INSERT INTO \(identifier: table) SELECT randomblob(1000) FROM n
                """)
            found.formUnion(openFiles())
        }
    }
    let sorted = try connection.prepare("SELECT v FROM kept ORDER BY v")
    // The whole sort has been written when its first row comes.
    guard try sorted.step() else { return ["nothing was kept"] }
    found.formUnion(openFiles())
    return found.subtracting(before).filter { path.isEmpty || !$0.hasPrefix(path) }
}

/// The names of the regular files that this process has open, including files that have no name
/// left.
private func openFiles() -> Set<String> {
    let folder = "/proc/self/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let files = numbers.compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
    }
    return Set(
        files.filter { $0.hasPrefix("/") && !$0.hasPrefix("/dev/") && !$0.hasPrefix("/proc/") })
}
