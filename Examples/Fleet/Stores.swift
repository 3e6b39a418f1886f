import Coffer
import Foundation

/// The stores, the key file that opens them, and the report of their rotations.
struct Stores {
    struct Line: Decodable {
        let event: String
        let path: String
        let pause: Double?
    }

    private struct Late: Error {}

    let paths: [String]
    let keyFile: String
    let list: String
    let reportFile: String

    /// Makes stores with one row, a hundred, and a thousand, of a kilobyte each.
    init(count: Int, in folder: URL) throws {
        keyFile = folder.appending(path: "rotator.key").path
        list = folder.appending(path: "stores.txt").path
        reportFile = folder.appending(path: "rotations.jsonl").path
        paths = (1...count).map { folder.appending(path: "\($0).db").path }
        let key = StoreKey.random()
        let made = key.withBytes { bytes in
            FileManager.default.createFile(
                atPath: keyFile, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
        }
        guard made else { throw CocoaError(.fileWriteUnknown) }
        try Data(paths.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: list))

        var configuration = Configuration()
        configuration.currentDate = { Date.now - 100 * 86_400 }
        for (index, path) in paths.enumerated() {
            let store = try Self.open(path, keyFile, mode: .createIfMissing, configuration)
            try store.write { tx in
                try tx.execute("CREATE TABLE written(number INTEGER PRIMARY KEY, note BLOB)")
                for number in 1...[1, 100, 1000][index % 3] {
                    try tx.execute("INSERT INTO written VALUES (\(-number), randomblob(1000))")
                }
            }
            try store.close()
        }
    }

    static func open(
        _ path: String, _ keyFile: String, mode: OpenMode = .mustExist,
        _ configuration: Configuration = Configuration()
    ) throws -> Store {
        let key = try Data(contentsOf: URL(filePath: keyFile))
        return try Store(
            path: path, key: .keyring(.keyFile(Array(key))), mode: mode,
            configuration: configuration)
    }

    /// The number of writes of a server that a store has.
    func count(_ path: String) throws -> Int {
        let store = try Self.open(path, keyFile)
        let count = try store.read { tx in
            try tx.firstRow("SELECT count(*) FROM written WHERE number > 0")?.get(0) ?? 0
        }
        try store.close()
        return count
    }

    /// The whole lines of the report. A rotator that was killed may have left a part of one.
    func lines() throws -> [Line] {
        let text = (try? Data(contentsOf: URL(filePath: reportFile))) ?? Data()
        return text.split(separator: UInt8(ascii: "\n")).compactMap {
            try? JSONDecoder().decode(Line.self, from: $0)
        }
    }

    /// Waits until the report has this many lines.
    func waitForLines(_ count: Int) throws {
        let end = ContinuousClock.now + .seconds(600)
        while try lines().count < count {
            guard ContinuousClock.now < end else { throw Late() }
            usleep(1000)
        }
    }
}
