import Coffer
import Foundation
import Testing

/// FMDB's behaviours of full-text search.
@Suite(.againstHanging, .onOwnThreads) struct FullTextBehaviourTests {
    private let folder: TemporaryFolder
    private let connection: Connection

    init() throws {
        folder = try TemporaryFolder()
        var configuration = Configuration.testing(.delete)
        configuration.tokenizerModules = ["TestModuleName"]
        connection = try Connection(
            path: folder.path(), key: .numbered(7), configuration: configuration)
        try connection.execute("CREATE VIRTUAL TABLE mail USING fts3(subject, body)")
        for (subject, body) in [
            ("hello world", "This message is a hello world message."),
            ("urgent: serious", "This mail is seen as a more serious mail"),
        ] {
            try connection.execute("INSERT INTO mail VALUES (\(subject), \(body))")
        }
    }

    private func offsetsOfWorld() throws -> String? {
        try connection.scalar("SELECT offsets(mail) FROM mail WHERE mail MATCH 'world'")
    }

    @Test func `F093 offsets tell column, term, byte and length of each match`() throws {
        let offsets = try #require(try offsetsOfWorld())
        #expect(offsets == "0 0 6 5 1 0 24 5")
        #expect(
            try TextMatch.parse(offsets) == [
                TextMatch(column: 0, term: 0, range: 6..<11),
                TextMatch(column: 1, term: 0, range: 24..<29),
            ])
    }

    @Test func `F095 offsets are the same with a tokenizer and a module of the program's`() throws {
        try connection.register(tokenizer: WordTokenizer(), named: "TestModuleName")
        try connection.execute("DROP TABLE mail")
        try connection.execute(
            "CREATE VIRTUAL TABLE mail USING fts3(subject, body, tokenize=TestModuleName)")
        try connection.execute(
            "INSERT INTO mail VALUES ('hello world', 'This message is a hello world message.')")
        let offsets = try #require(try offsetsOfWorld())
        let matches = try TextMatch.parse(offsets)
        #expect(matches.map(\.column) == [0, 1])
        #expect(matches.map(\.range) == [6..<11, 24..<29])
        #expect(matches.map(\.term) == [0, 0])
    }

    @Test func `F096 a module named in the configuration finds words beyond ASCII`() throws {
        try connection.register(tokenizer: WordTokenizer(), named: "TestModuleName")
        try connection.execute(
            "CREATE VIRTUAL TABLE simple_fts USING fts3(tokenize=TestModuleName)")
        let sentence = "I like the band Queensrÿche. They are really great."
        try connection.execute("INSERT INTO simple_fts VALUES (\(sentence))")
        let row = try connection.firstRow(
            "SELECT * FROM simple_fts WHERE simple_fts MATCH \("Queensrÿche")")
        #expect(row?[0] == .text(sentence))
    }
}
