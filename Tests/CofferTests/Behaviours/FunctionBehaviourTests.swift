import Coffer
import Foundation
import Testing

/// FMDB's behaviours of functions that SQL calls.
@Suite(.againstHanging, .onOwnThreads) struct FunctionBehaviourTests {
    private let fixture: BehaviourFixture
    private var connection: Connection { fixture.connection }

    init() throws {
        fixture = try BehaviourFixture()
        try fixture.connection.register(
            function: "RemoveDiacritics", argumentCount: 1, options: .deterministic
        ) { arguments in
            switch arguments[0] {
            case .null: return .null
            case .text(let text):
                let folded = text.decomposedStringWithCanonicalMapping.unicodeScalars.filter {
                    !$0.properties.isDiacritic
                }
                return .text(String(String.UnicodeScalarView(folded)))
            default: throw FunctionError("Expected text")
            }
        }
        try fixture.connection.register(function: "Hypotenuse", argumentCount: 2) { arguments in
            func number(_ index: Int) -> Double? {
                switch arguments[index] {
                case .integer(let integer): Double(integer)
                case .real(let real): real
                default: nil
                }
            }
            guard number(0) != nil || number(1) != nil else {
                throw FunctionError("Expected numeric")
            }
            let (a, b) = (number(0) ?? 0, number(1) ?? 0)
            return .real((a * a + b * b).squareRoot())
        }
        try fixture.connection.register(
            function: "SetAlternatingByteToOne", argumentCount: 1
        ) { arguments in
            guard case .blob(var data)? = arguments[0] else {
                throw FunctionError("Expected blob")
            }
            for index in stride(from: 0, to: data.count, by: 2) { data[index] = 1 }
            return .blob(data)
        }
    }

    private func scalar(_ sql: SQL) throws -> Value {
        try #require(try connection.firstRow(sql)?[0])
    }

    @Test func `F039 a function works on text, and one on bytes`() throws {
        #expect(try scalar("SELECT RemoveDiacritics('José')") == "Jose")
        #expect(try scalar("SELECT RemoveDiacritics(NULL)") == .null)
        #expect(
            try scalar("SELECT SetAlternatingByteToOne(x'09090909')")
                == .blob(Data([1, 9, 1, 9])))
    }

    @Test func `F040 a function's error is the statement's, a wrong count fails at prepare`() throws
    {
        let statement = try connection.prepare("SELECT RemoveDiacritics(3.14159)")
        #expect(expect(.sql) { try statement.step() }?.message == "Expected text")
        let error = expect(.sql) { try connection.prepare("SELECT RemoveDiacritics('jose','x')") }
        #expect(error?.message.contains("wrong number of arguments") == true)
    }

    @Test func `F041 a function of reals`() throws {
        #expect(try scalar("SELECT Hypotenuse(3.0, 4.0)") == .real(5.0))
    }

    @Test func `F042 a function of integers`() throws {
        #expect(try scalar("SELECT CAST(Hypotenuse(3, 4) AS INTEGER)") == .integer(5))
    }

    @Test func `F043 a function refuses what is no number`() throws {
        let statement = try connection.prepare("SELECT Hypotenuse('foo', 'bar')")
        #expect(expect(.sql) { try statement.step() }?.message == "Expected numeric")
        let error = expect(.sql) { try connection.prepare("SELECT Hypotenuse(3.0)") }
        #expect(error?.message.contains("wrong number of arguments") == true)
    }

    @Test func `F045 a function refuses what is no blob`() throws {
        let statement = try connection.prepare("SELECT SetAlternatingByteToOne('foo')")
        #expect(expect(.sql) { try statement.step() }?.message == "Expected blob")
    }

    @Test func `F046 NULL is nil in every optional type, and a mismatch in the others`() throws {
        try connection.register(function: "seen", argumentCount: 1) { arguments in
            let (data, text) = (
                try arguments.get(0, as: Data?.self), try arguments.get(0, as: String?.self)
            )
            #expect(data == nil && text == nil)
            let (int, long, double) = (
                try arguments.get(0, as: Int?.self), try arguments.get(0, as: Int64?.self),
                try arguments.get(0, as: Double?.self)
            )
            #expect(int ?? 0 == 0 && long ?? 0 == 0 && double ?? 0 == 0.0)
            expect(.mismatch) { try arguments.get(0, as: Int.self) }
            return 42
        }
        #expect(try scalar("SELECT seen(NULL)") == 42)
    }

    @Test(arguments: [Value.text(""), .blob(Data()), .text("a\0b"), .integer(.max)])
    func `a result arrives as it was returned`(_ value: Value) throws {
        try connection.register(function: "result", argumentCount: 0) { _ in value }
        #expect(try scalar("SELECT result()") == value)
    }

    @Test func `F047 a function without arguments returns an integer`() throws {
        try connection.register(function: "answer", argumentCount: 0) { _ in 42 }
        #expect(try scalar("SELECT answer()") == .integer(42))
    }

    @Test func `F048 a function returns an integer of 64 bits`() throws {
        try connection.register(function: "answer", argumentCount: 0) { _ in
            .integer(Int64(42))
        }
        #expect(try connection.firstRow("SELECT answer()")?.get(0, as: Int64.self) == 42)
    }

    @Test func `F049 a function returns a real exactly`() throws {
        try connection.register(function: "tenth", argumentCount: 0) { _ in 0.1 }
        #expect(try scalar("SELECT tenth()") == .real(0.1))
    }

    @Test func `F050 a function returns NULL`() throws {
        try connection.register(function: "no_value", argumentCount: 0) { _ in nil }
        #expect(try scalar("SELECT no_value()") == .null)
    }

    @Test func `F052 a function can say that its result is too big`() throws {
        try connection.register(function: "big", argumentCount: 0) { _ in
            throw FunctionError.tooBig
        }
        let error = expect(.tooBig) { try connection.rows("SELECT big()") }
        #expect(error?.message == "string or blob too big")
        #expect(error?.resultCode == 18)
    }

    @Test func `F053 a function can say that there is no memory`() throws {
        try connection.register(function: "huge", argumentCount: 0) { _ in
            throw FunctionError.noMemory
        }
        let error = expect(.io) { try connection.rows("SELECT huge()") }
        #expect(error?.message == "out of memory")
        #expect(error?.resultCode == 7)
    }

    @Test func `X2 a function chooses rows`() throws {
        try connection.execute("CREATE TABLE t(a TEXT)")
        try connection.execute(
            "INSERT INTO t VALUES ('hello'), ('hi'), ('not h!'), ('definitely not h!')")
        try connection.register(function: "StringStartsWithH", argumentCount: 1) { arguments in
            .integer(try arguments.get(0, as: String.self).hasPrefix("h") ? 1 : 0)
        }
        let rows = try connection.rows("SELECT a FROM t WHERE StringStartsWithH(a)")
        #expect(rows.map { $0[0] } == ["hello", "hi"])
    }
}
