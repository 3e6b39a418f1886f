import Foundation
import Testing

@testable import Coffer

/// The tool's verbs that only read a store with a table `t`.
enum ReadingVerbs {
    static let all = [
        "status", "sql", "kv", "kv export", "export", "shell-key", "verify", "backup", "decrypt",
    ]

    /// Runs a verb with a numbered key; copies go into their own folder.
    static func run(
        _ verb: String, _ path: String, key: UInt8 = 1, under wrapper: [String] = []
    ) throws -> Tool.Output {
        let folder = try TemporaryFolder()
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o777], ofItemAtPath: folder.url.path)
        let copy = folder.path("copy.db")
        let arguments =
            switch verb {
            case "sql": ["sql", path, "SELECT count(*) FROM t"]
            case "kv": ["kv", "list", path]
            case "kv export": ["kv", "export", path, "b"]
            case "export": ["export", path, "--table", "t", "--format", "jsonl"]
            case "shell-key": ["shell-key", path, "--reveal"]
            case "backup": ["backup", path, copy]
            case "decrypt": ["decrypt", path, copy, "--write-plaintext"]
            default: [verb, path]
            }
        return try Tool.run(
            arguments + ["--raw-key-fd", "3"], descriptors: [3: Tool.key(key)], under: wrapper)
    }

    /// Makes a closed store with a table `t`.
    static func make(
        _ path: String, _ mode: Configuration.JournalMode, rowCount: Int = 3
    ) throws {
        let connection = try Connection(
            path: path, key: .numbered(1), configuration: .testing(mode))
        defer { connection.close() }
        try connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try connection.transaction {
            for number in 0..<rowCount {
                let value = [UInt8](repeating: 5, count: rowCount > 100 ? 3000 : 10)
                try connection.execute("INSERT INTO t VALUES (\(number), \(value))")
            }
            try connection.makeBucket("b", keyType: .text, codec: "sql")
        }
    }
}

extension TemporaryFolder {
    /// All files with their bytes.
    func content() throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: url.path)
        return try Dictionary(
            uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: url.appending(path: $0))) })
    }
}
