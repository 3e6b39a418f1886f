import Coffer

/// The output of `coffer --version`.
enum Version {
    static var text: String {
        guard let engine = try? Engine.capabilities else {
            return "coffer, without a usable engine"
        }
        return "coffer, on SQLCipher \(engine.cipherVersion) with SQLite \(engine.sqliteVersion)"
    }
}
