import Coffer
import Foundation

/// The databases that the numbered behaviours start from: a fresh encrypted file with a rollback
/// journal, one open connection.
struct BehaviourFixture {
    let folder: TemporaryFolder
    let connection: Connection

    /// An empty database.
    init() throws {
        folder = try TemporaryFolder()
        connection = try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing(.delete))
    }

    /// `test` with 20 rows of "hi'" and, in a second transaction, 20 of "hi again'"; `t3` with the
    /// numbers from 0 to 19.
    static func test() throws -> BehaviourFixture {
        let fixture = try BehaviourFixture.test20()
        let connection = fixture.connection
        try connection.transaction {
            for number in 1...20 { try fixture.insert("hi again'", number) }
        }
        try connection.execute("CREATE TABLE t3(a somevalue)")
        try connection.transaction {
            for number in 0..<20 { try connection.execute("INSERT INTO t3 VALUES (\(number))") }
        }
        return fixture
    }

    /// `test` with its first 20 rows, and no `t3`.
    static func test20() throws -> BehaviourFixture {
        let fixture = try BehaviourFixture()
        let connection = fixture.connection
        try connection.execute(
            "CREATE TABLE test(a text, b text, c integer, d double, e double)")
        try connection.transaction {
            for number in 1...20 { try fixture.insert("hi'", number) }
        }
        return fixture
    }

    private func insert(_ text: String, _ number: Int) throws {
        try connection.execute(
            """
            INSERT INTO test VALUES (\(text), \("number \(number)"), \(number), \(Date()), \
            \(Float(2.2)))
            """)
    }

    /// A second connection to the same file.
    func secondConnection() throws -> Connection {
        try Connection(
            path: folder.path(), key: .numbered(7), configuration: .testing(.delete))
    }
}
