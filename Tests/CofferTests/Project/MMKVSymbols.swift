import Coffer
import Foundation

/// The symbols in the table of ComingFromMMKV, each in a call that only has to compile.
/// `TableSymbolTests` compares the comments with the table, and the words with the code.
private enum MMKVSymbols {
    // No symbols of Coffer: `nil`, `Codable`

    // `Bucket<String, Int>("settings")`
    static let settings = Bucket<String, Int>("settings")
    // `Int`
    static let launches = Bucket<String, Int>("launches")
    // `Bucket<String, Date>("seen")`
    static let seen = Bucket<String, Date>("seen")
    // `Bucket<String, Int>("codes", lifetime: .seconds(300))`
    static let codes = Bucket<String, Int>("codes", lifetime: .seconds(300))
    // `Setting("dark", default: false)`
    static let theme = Setting("dark", default: false)

    static func calls(_ path: String) throws {
        // `Configuration.durability`
        var configuration: Configuration = Configuration()
        configuration.durability = .power
        // `Store(path:key:)`
        let store = try Store(path: path, key: .random(), configuration: configuration)
        // `store.set(7, for: "launches", in: launches)`
        try store.set(7, for: "launches", in: launches)
        // `store.get("launches", in: launches)`
        _ = try store.get("launches", in: launches)
        // `store.contains("a", in: launches)`
        _ = try store.contains("a", in: launches)
        // `store.entries(in: launches)`
        _ = try store.entries(in: launches)
        // `store.count(in: launches)`
        _ = try store.count(in: launches)
        // `store.remove("a", in: launches)`
        try store.remove("a", in: launches)
        // `store.removeAll(in: launches)`
        try store.removeAll(in: launches)
        // `expiring: .after(.seconds(60))`
        try store.set(7, for: "a", in: codes, expiring: .after(.seconds(60)))
        // `store.rekey(to:)`
        _ = try store.rekey(to: .random())
        // `store.observe(theme)`
        _ = store.observe(theme)
        // `store.changes(in: launches)`
        _ = store.changes(in: launches)
        // `store.compact()`
        _ = try store.compact()
    }
}
