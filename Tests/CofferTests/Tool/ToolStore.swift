import Coffer
import Foundation
import Testing

/// A store in its own folder, and `coffer` with its key.
final class ToolStore {
    let folder: TemporaryFolder
    let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path()
        try connect().close()
    }

    func connect() throws -> Connection {
        try Connection(path: path, key: .numbered(1), configuration: .testing())
    }

    /// Runs statements in the library, not in the tool.
    func execute(_ statements: SQL...) throws {
        let connection = try connect()
        defer { connection.close() }
        for statement in statements { try connection.execute(statement) }
    }

    func rows(_ sql: SQL) throws -> [[Value]] {
        let connection = try connect()
        defer { connection.close() }
        return try connection.rows(sql).map(\.values)
    }

    /// Names of the tables, so that a test sees what an import left behind.
    func tables() throws -> [String] {
        try rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            .compactMap { if case .text(let name) = $0[0] { name } else { nil } }
    }

    func write(_ data: Data, as name: String) throws -> String {
        let path = folder.path(name)
        try data.write(to: URL(filePath: path))
        return path
    }

    /// `coffer VERB PATH …` with the store's key.
    func run(
        _ verb: String, _ arguments: [String] = [], input: Data = Data(),
        timeout: Duration = .seconds(120)
    ) throws -> Tool.Output {
        try Tool.run(
            [verb, path] + arguments + ["--raw-key-fd", "3"], input: input,
            descriptors: [3: Tool.key(1)], timeout: timeout)
    }

    /// The same, but expects that it succeeds.
    @discardableResult
    func succeed(
        _ verb: String, _ arguments: [String] = [], input: Data = Data(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Tool.Output {
        let output = try run(verb, arguments, input: input)
        #expect(output.exitCode == 0, "\(output.errorText)", sourceLocation: sourceLocation)
        return output
    }

    /// Expects that it fails, says these words on standard error, and nothing on standard output.
    func fail(
        _ verb: String, _ arguments: [String] = [], input: Data = Data(), exitCode: Int32 = 1,
        saying words: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let output = try run(verb, arguments, input: input)
        #expect(output.exitCode == exitCode, "\(output.errorText)", sourceLocation: sourceLocation)
        #expect(output.stdout.isEmpty, sourceLocation: sourceLocation)
        for word in words {
            #expect(
                output.errorText.contains(word), "\(output.errorText)",
                sourceLocation: sourceLocation)
        }
    }
}

/// Values of every storage class that a conversion to text easily changes.
let awkwardValues: [Value] = [
    .null, .integer(0), .integer(.min), .integer(.max), .integer(1), .real(1), .real(-0.0),
    .real(0.1), .real(0.1 + 0.2), .real(1e16), .real(9_007_199_254_740_994), .real(1 / 3),
    .real(.greatestFiniteMagnitude), .real(.leastNormalMagnitude), .real(.leastNonzeroMagnitude),
    .real(.leastNormalMagnitude.nextDown), .real(.infinity), .real(-.infinity), .real(1e22),
    .real(123e-7),
    .text(""), .text("plain"), .text("5"), .text("1.0"), .text("NULL"), .text("a\u{0}b"),
    .text("\u{0}"), .text("o'x"), .text("say \"yes\""), .text("two\nlines"), .text("two\r\nlines"),
    .text("end\r"), .text("\u{301}starts with a mark"), .text("e\u{301} Å à … 🧪"), .text(";--"),
    .text(" edge "), .text("\u{feff}mark"), .text("\u{1b}[31m\u{7f}\u{85}\u{2028}"), .text("\\"),
    .blob(Data()), .blob(Data([0])), .blob(Data([0, 255, 34, 39])), .blob(Data("text".utf8)),
]

/// Whether class and bits are equal: `==` takes -0.0 for 0.0.
func isIdentical(_ first: Value, _ second: Value) -> Bool {
    switch (first, second) {
    case (.real(let first), .real(let second)): first.bitPattern == second.bitPattern
    case (.text(let first), .text(let second)): first.utf8.elementsEqual(second.utf8)
    default: first == second
    }
}
