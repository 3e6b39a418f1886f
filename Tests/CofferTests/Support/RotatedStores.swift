import Foundation
import Testing

@testable import Coffer

/// Stores in a folder that `coffer rotate` is run for.
struct RotatedStores {
    let folder: TemporaryFolder
    let secret: [String]
    static let file = [UInt8](repeating: 42, count: 32)

    init() throws {
        folder = try TemporaryFolder()
        secret = ["--key-file", folder.path("file")]
        try writeSecret(Self.file, to: "file")
    }

    /// Writes a file that only its owner may read.
    func writeSecret(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: path(name)))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: path(name))
    }

    func path(_ name: String) -> String { folder.path(name) }

    func open(_ name: String) throws -> Store {
        try Store(
            path: path(name), key: .keyring(.keyFile(Self.file)), configuration: .testing())
    }

    /// Makes stores that the key file opens.
    func make(_ names: String...) throws {
        for name in names {
            let store = try open(name)
            try store.write { tx in try tx.execute("CREATE TABLE t(v)") }
            try store.close()
        }
    }

    /// Adds a slot for the passphrase in the file `words`.
    func addPassphrase(to names: String...) throws {
        try Data("words".utf8).write(to: URL(filePath: path("words")))
        for name in names {
            let store = try open(name)
            try store.keys.add(.passphrase("words"), label: "words")
            try store.close()
        }
    }

    func epoch(_ name: String) throws -> Int { try Keyring(of: path(name)).epoch }

    func rotate(
        _ names: [String], _ options: [String] = [], secret: [String]? = nil, input: Data = Data(),
        exitCode: Int32 = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try Tool.run(
            ["rotate"] + names.map(path) + (secret ?? self.secret) + options, input: input)
        #expect(
            output.exitCode == exitCode, "\(output.text)\(output.errorText)",
            sourceLocation: sourceLocation)
        return output
    }

    struct Line: Decodable, Equatable {
        let event: String
        let path: String
        var oldEpoch: Int?
        var epoch: Int?
        var exitCode: Int?
        var message: String?
        var warnings: [String]?
    }

    struct Result: Decodable {
        let counts: [String: Int]
        let stores: [Line]
    }

    /// A line of a report: a run for the store began at an epoch, and was killed.
    func begun(_ name: String, at epoch: Int, storeID: String? = nil) throws -> String {
        let id = try storeID ?? Keyring(of: path(name)).storeID
        return #"{"event":"started","path":"\#(path(name))","storeID":"\#(id)","#
            + #""oldEpoch":\#(epoch),"oldKeyID":"0","oldRootID":"0","host":"here","uid":0,"#
            + #""time":"2026-01-01T00:00:00Z","schema":1}"#
    }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path(name)))
    }

    func read(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    func lines(of report: String = "report") throws -> [Line] {
        try Data(contentsOf: URL(filePath: path(report))).split(separator: 10)
            .map { try JSONDecoder().decode(Line.self, from: $0) }
    }

    func events(_ name: String) throws -> [String] {
        try lines().filter { $0.path == path(name) }.map(\.event)
    }

    func result(_ output: Tool.Output) throws -> Result {
        try JSONDecoder().decode(Result.self, from: output.stdout)
    }
}
