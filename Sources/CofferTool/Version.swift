import Coffer

/// The output of `coffer --version`.
enum Version {
    static var text: String {
        guard let engine = try? Engine.capabilities else {
            return "coffer \(Release.version), without a usable engine"
        }
        return "coffer \(Release.version), on SQLCipher \(engine.cipherVersion) with SQLite "
            + engine.sqliteVersion
    }
}

extension Engine.Capabilities {
    /// The versions of the engine in a report.
    var names: String { "SQLCipher \(cipherVersion), SQLite \(sqliteVersion)" }
}
