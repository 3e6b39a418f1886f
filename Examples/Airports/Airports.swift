import Coffer
import Foundation
import Report

/// The airports and planes of New York's flights of 2013, in one encrypted file.
///
/// Run it with `make demo`. It makes its store again each time, and prints where it leaves it.
@main
struct Airports {
    static let passphrase = "correct horse battery staple"
    static let newPassphrase = "four words chosen by dice"
    static let settings = Bucket<String, Settings>("settings")

    static func main() async throws {
        var report = Report()
        let folder = URL.temporaryDirectory.appending(path: "coffer-airports")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appending(path: "airports.db").path
        try report.line("engine", "SQLCipher \(Engine.capabilities.cipherVersion)")
        report.line("store", path)

        // The key is derived once, whatever the number of connections.
        let store = try await Store(path: path, key: .passphrase(passphrase))
        report.lap("create, derive the key")
        report.line("profile", "\(store.profile)")

        try await fill(store, &report)
        try await query(store, &report)
        try await changeKey(store, &report)
        try inspect(path, &report)
    }

    /// Imports the data. No SQL: the tables come from the structs.
    static func fill(_ store: Store, _ report: inout Report) async throws {
        let airports = try Airport.load()
        let planes = try Plane.load()
        report.lap("read the CSV files")
        try await store.write { tx in try tx.insert(airports) }
        report.lap("import \(airports.count) airports")
        try await store.write { tx in try tx.insert(planes) }
        report.lap("import \(planes.count) planes")

        let file = DataFiles.url("planes.csv")
        let original = Attachment(name: file.lastPathComponent, content: try Data(contentsOf: file))
        try await store.write { tx in
            try tx.insert(original)
            try tx.set(Settings(home: "JFK", units: "nautical miles"), for: "ada", in: settings)
            try tx.set(Settings(home: "EWR", units: "kilometres"), for: "grace", in: settings)
        }
        report.lap("store a file of \(original.content.count) bytes, two settings")
        let copy = try await store.read { tx in try tx.find(Attachment.self, original.name) }
        report.check("the file reads back byte for byte", copy?.content == original.content)
    }

    /// Queries by key path, and once in SQL with a bound value.
    static func query(_ store: Store, _ report: inout Report) async throws {
        let highest = try await store.read { tx in
            try tx.fetch(Airport.order(by: \.alt, .descending).limit(3))
        }
        report.lap("find the highest airports")
        for airport in highest { report.item(airport.name, "\(airport.alt) ft") }

        let northern = try await store.read { tx in
            try tx.count(Airport.where(\.lat > 60 && \.tzone == "America/Anchorage"))
        }
        report.line("airports of Alaska beyond 60° north", "\(northern)")

        let engineCount = 4
        let makers = try await store.read { tx in
            try tx.rows(
                """
                SELECT manufacturer, count(*) FROM plane WHERE engines = \(engineCount)
                GROUP BY manufacturer ORDER BY count(*) DESC, manufacturer LIMIT 3
                """)
        }
        report.line("who makes planes with \(engineCount) engines", "")
        for row in makers { report.item(try row.get(0), "\(try row.get(1, as: Int.self))") }

        let ada = try await store.read { tx in try tx.get("ada", in: settings) }
        report.line("settings of ada", ada.map { "\($0.home), \($0.units)" } ?? "none")
    }

    /// Changes the passphrase, and shows that it changed.
    static func changeKey(_ store: Store, _ report: inout Report) async throws {
        try await store.rekey(to: .passphrase(newPassphrase))
        report.lap("rekey: every page, in place, proven")
        let path = store.path
        try await store.close()
        do {
            _ = try await Store(path: path, key: .passphrase(passphrase))
            report.check("the old passphrase is refused", false)
        } catch let error as StoreError where error.code == .wrongKey {
            report.check("the old passphrase is refused", true)
        }
        let reopened = try await Store(path: path, key: .passphrase(newPassphrase))
        let counts = try await reopened.read { tx in
            (try tx.count(Airport.all), try tx.count(Plane.all))
        }
        report.check("the new one opens all \(counts.0) + \(counts.1) rows", counts == (1458, 3322))
        try await reopened.close()
    }

    /// Looks at the closed files from outside.
    static func inspect(_ path: String, _ report: inout Report) throws {
        let folder = URL(filePath: path).deletingLastPathComponent()
        let files = try FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil)
        let bytes = try files.map { try Data(contentsOf: $0) }
        let secrets = ["John F Kennedy Intl", "nautical miles", "EMBRAER", "CREATE TABLE"]
        let isFound = secrets.contains { secret in
            bytes.contains { $0.range(of: Data(secret.utf8)) != nil }
        }
        report.check("no name, setting or table stands in the files in clear", !isFound)
        report.line(
            "size on disk", "\(bytes.map(\.count).reduce(0, +)) bytes in \(files.count) file")
        let count = try Shell.airportCount(path, passphrase: newPassphrase)
        report.check("the sqlcipher shell opens the same file", count == "1458")
        report.end()
    }
}
