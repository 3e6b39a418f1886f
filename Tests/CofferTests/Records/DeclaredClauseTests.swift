import CSQLCipher
import Foundation
import Testing

@testable import Coffer

/// Clauses that a type declares: AUTOINCREMENT, CHECK, COLLATE, partial indexes, indexes of
/// expressions, and computed defaults.
@Suite(.againstHanging, .onOwnThreads) struct DeclaredClauseTests {
    private let fixture: RecordFixture
    private let migrator: Migrator
    private var store: Store { fixture.store }

    init() throws {
        fixture = try RecordFixture()
        migrator = Migrator(fixture.store)
    }

    private struct Account: Record, Equatable {
        static let isAutoincrement = true
        static var collations: [PartialKeyPath<Self>: Collation] { [\.email: .nocase] }
        static var indexes: [Index<Self>] {
            [
                Index(\.email, isUnique: true),
                Index(\.name, where: \.deleted == nil && \.name != "it's \"x\""),
                Index(sql: "lower(name)", "balance + 1"),
                Index(sql: "substr(name, 1, \(2))", isUnique: true, where: \.balance > 100),
            ]
        }
        static var checks: [CheckConstraint<Self>] {
            [
                CheckConstraint(\.balance >= -0.5 && \.name != "x'"),
                CheckConstraint(sql: "length(email) < \(50)"),
                CheckConstraint(\.created > Date(timeIntervalSince1970: 0)),
            ]
        }
        static var defaults: [Default<Self>] {
            [.now(\.created), Default(\.name, sql: "lower('N' || \(1))")]
        }
        var id: Int64?
        var email: String
        var name: String
        var balance: Double
        var deleted: Date?
        var created: Date

        init(_ email: String, name: String = "n", balance: Double = 1) {
            (self.email, self.name, self.balance) = (email, name, balance)
            created = Date(timeIntervalSince1970: 1)
        }
    }

    @Test func `create makes every clause, and a second one finds no difference`() throws {
        try store.write { tx throws in
            for _ in 0..<3 { try tx.create(Account.self) }
            #expect(try tx.schemaDifferences(of: Account.self).isEmpty)
        }
        let texts: [Value] = try fixture.values(
            "SELECT sql FROM sqlite_master WHERE tbl_name = 'account' ORDER BY name"
        )
        #expect(
            texts == [
                .text(
                    "CREATE TABLE \"account\" (\"id\" INTEGER PRIMARY KEY AUTOINCREMENT, "
                        + "\"email\" TEXT NOT NULL COLLATE NOCASE, "
                        + "\"name\" TEXT NOT NULL DEFAULT (lower('N' || 1)), "
                        + "\"balance\" REAL NOT NULL, \"deleted\" REAL_SINCE_2001, "
                        + "\"created\" REAL_SINCE_2001 NOT NULL "
                        + "DEFAULT ((julianday('now') - 2451910.5) * 86400.0), "
                        + "CHECK ((\"balance\" >= -0.5 AND \"name\" IS NOT 'x''')), "
                        + "CHECK (length(email) < 50), CHECK (\"created\" > -978307200.0))"),
                "CREATE UNIQUE INDEX \"index_account_email\" ON \"account\" (\"email\")",
                .text(
                    "CREATE INDEX \"index_account_lower_name_balance_1\" ON \"account\" "
                        + "(lower(name), balance + 1)"),
                .text(
                    "CREATE INDEX \"index_account_name\" ON \"account\" (\"name\") WHERE "
                        + "(\"deleted\" IS NULL AND \"name\" IS NOT 'it''s \"x\"')"),
                .text(
                    "CREATE UNIQUE INDEX \"index_account_substr_name_1\" ON \"account\" "
                        + "(substr(name, 1, 2)) WHERE \"balance\" > 100.0"),
            ])
    }

    @Test func `the file keeps what is declared`() throws {
        try store.write { tx throws in
            try tx.insert(Account("a@b", name: "aax", balance: 101))
            expect(.constraint) { try tx.insert(Account("A@B")) }
            expect(.constraint) { try tx.insert(Account("c", balance: -1)) }
            expect(.constraint) { try tx.insert(Account("c", name: "x'")) }
            expect(.constraint) { try tx.insert(Account(String(repeating: "c", count: 50))) }
            expect(.constraint) { try tx.insert(Account("c", name: "aay", balance: 102)) }
            #expect(try tx.insert(Account("c", name: "aay")) > 1)
            #expect(try tx.fetch(Account.where(\.email == "A@b")).count == 1)
            let last = try tx.requireScalar("SELECT max(id) FROM account", as: Int64.self)
            try tx.delete(Account.self, key: last)
            #expect(try tx.insert(Account("d")) == last + 1)
        }
        let before = Date()
        try fixture.execute("INSERT INTO account(email, balance) VALUES ('e', 1)")
        let made = try store.read { tx in try tx.fetch(Account.where(\.email == "e")) }
        #expect(made.first?.name == "n1")
        let created = try #require(made.first?.created)
        #expect(created >= before - 0.01 && created <= Date() + 0.01)
    }

    @Test func `a query with the condition of a partial index uses it`() throws {
        try store.write { tx throws in
            try tx.create(Account.self)
            let plan = try tx.rows(
                """
                EXPLAIN QUERY PLAN SELECT id FROM account
                WHERE "deleted" IS NULL AND "name" IS NOT 'it''s "x"' AND "name" = 'n'
                """)
            #expect("\(plan)".contains("index_account_name"))
        }
    }

    @Test func `a table without the clauses differs, and altering it adds them`() throws {
        try fixture.execute(
            """
            CREATE TABLE account(id INTEGER PRIMARY KEY, email TEXT NOT NULL, name TEXT NOT NULL,
                balance REAL NOT NULL, deleted REAL_SINCE_2001)
            """)
        try fixture.execute("INSERT INTO account VALUES (41, 'a', 'n', 1, NULL)")
        let found = try store.read { tx in try tx.schemaDifferences(of: Account.self) }
        #expect(
            found.map(\.description) == [
                "column created: expected REAL_SINCE_2001 NOT NULL, found no such column",
                "column id: expected AUTOINCREMENT, found no AUTOINCREMENT",
                "column email: expected COLLATE NOCASE, found COLLATE BINARY",
                "expected CHECK ((\"balance\" >= -0.5 AND \"name\" IS NOT 'x''')), "
                    + "found no such CHECK",
                "expected CHECK (length(email) < 50), found no such CHECK",
                "expected CHECK (\"created\" > 0.0), found no such CHECK",
            ])
        expect(.mismatch) { try store.write { tx in try tx.create(Account.self) } }
        let before = Date()
        try migrator.run { tx in
            try tx.alter(Account.self)
            #expect(try tx.schemaDifferences(of: Account.self).isEmpty)
            // Again, since the type declares all that the table has.
            try tx.alter(Account.self)
        }
        let account = try store.read { tx in try tx.find(Account.self, 41 as Int64) }
        #expect(try #require(account).created >= before - 0.01)
        try fixture.execute("DELETE FROM account")
        #expect(try store.write { tx in try tx.insert(Account("new")) } == 42)
    }

    private struct Fewer: Record {
        static let table = "account"
        var id: Int64?
        var email: String
        var name: String
        var balance: Double
        var deleted: Date?
        var created: Date
    }

    @Test func `altering gives up no clause in silence`() throws {
        try store.write { tx in try tx.create(Account.self) }
        expect(.mismatch) { try migrator.run { tx in try tx.alter(Fewer.self) } }
        // The type declares no unique index, which is a difference as for any other table.
        expect(.mismatch) {
            try migrator.run { tx in
                try tx.alter(Fewer.self) { table in table.dropUndeclaredClauses() }
            }
        }
        try migrator.run { tx in
            try tx.table("account").dropIndex("index_account_email")
            try tx.alter(Fewer.self) { table in table.dropUndeclaredClauses() }
        }
        try fixture.execute("INSERT INTO account VALUES (NULL, 'a', 'n', -7, NULL, 1)")
    }

    @Test func `create adds an index that a type has gained, and another one of its name differs`()
        throws
    {
        struct Before: Record {
            static let table = "thing"
            var id: Int
            var name: String
        }
        struct After: Record {
            static let table = "thing"
            static var indexes: [Index<Self>] {
                [Index(\.name, where: \.id > 5), Index(sql: "lower(name)", name: "low")]
            }
            var id: Int
            var name: String
        }
        try store.write { tx throws in
            try tx.create(Before.self)
            try tx.create(After.self)
            try tx.create(After.self)
            #expect(
                try tx.indexes(of: "thing").map(\.name).sorted() == ["index_thing_name", "low"])
            try tx.execute("DROP INDEX low")
            try tx.execute("CREATE INDEX low ON thing(upper(name))")
            #expect(try tx.schemaDifferences(of: After.self).count == 1)
            expect(.mismatch) { try tx.create(After.self) }
        }
    }

    // MARK: Refusals

    @Test
    func `expressions that other programs could not compute are refused, and nothing is made`()
        throws
    {
        struct Own: Record {
            static var indexes: [Index<Self>] { [Index(sql: "my_function(name)")] }
            var id: Int
            var name: String
        }
        struct Typo: Record {
            static var checks: [CheckConstraint<Self>] { [CheckConstraint(sql: "\"nmae\" <> ''")] }
            var id: Int
            var name: String
        }
        struct Blind: Record {
            static let isAutoincrement = true
            var name: String
        }
        struct Numbers: Record {
            static var collations: [PartialKeyPath<Self>: Collation] { [\.id: .rtrim] }
            var id: Int
        }
        struct Nul: Record {
            static var checks: [CheckConstraint<Self>] { [CheckConstraint(\.name != "a\0b")] }
            var id: Int
            var name: String
        }
        try store.write { tx throws in
            expect(.misuse) { try tx.create(Own.self) }
            expect(.misuse) { try tx.create(Typo.self) }
            expect(.misuse) { try tx.create(Blind.self) }
            expect(.misuse) { try tx.create(Numbers.self) }
            expect(.mismatch) { try tx.create(Nul.self) }
        }
        #expect(try fixture.values("SELECT count(*) FROM sqlite_master") == [0])
    }

    @Test func `the stock engine writes a table with all clauses`() throws {
        try store.write { tx in try tx.create(Account.self) }
        let target = fixture.folder.path("plain.db")
        try store.decrypt(to: target)
        let raw = try RawConnection(target)
        #expect(raw.run("INSERT INTO account(email, balance) VALUES ('raw', 200)") == SQLITE_OK)
        #expect(raw.first("SELECT name FROM account") == "n1")
    }
}
