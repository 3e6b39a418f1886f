import CTool
import Coffer

/// The output of `coffer --version`.
enum Version {
    static var text: String {
        let commit = String(cString: coffer_commit())
        let name = "coffer \(Release.version)" + (commit.isEmpty ? "" : " (commit \(commit))")
        guard let engine = try? Engine.capabilities else {
            return "\(name), without a usable engine"
        }
        return "\(name), on SQLCipher \(engine.cipherVersion) with SQLite "
            + engine.sqliteVersion
    }
}

extension Engine.Capabilities {
    /// The versions of the engine in a report.
    var names: String { "SQLCipher \(cipherVersion), SQLite \(sqliteVersion)" }
}
