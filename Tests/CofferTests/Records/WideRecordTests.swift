import Foundation
import Testing

@testable import Coffer

/// Records of more columns than an SQL function takes arguments: 100 on SQLCipher 3.4.1, 127 on 4.
/// The collector is such a function.
@Suite(.againstHanging, .onOwnThreads) struct WideRecordTests {
    private let fixture: RecordFixture

    init() throws {
        fixture = try RecordFixture()
    }

    protocol WideRecord: Record, Equatable {
        init()
    }

    struct Columns100<P: RecordPathsTests.Path>: WideRecord {
        static var access: RecordAccess { P.access }
        static var table: String { "columns" }
        var a0 = 0, a1 = 0, a2 = 0, a3: Int?, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0
        var a10: Int?, a11 = 0, a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0, a17: Int?, a18 = 0
        var a19 = 0, a20 = 0, a21 = 0, a22 = 0, a23 = 0, a24: Int?, a25 = 0, a26 = 0, a27 = 0
        var a28 = 0, a29 = 0, a30 = 0, a31: Int?, a32 = 0, a33 = 0, a34 = 0, a35 = 0, a36 = 0
        var a37 = 0, a38: Int?, a39 = 0, a40 = 0, a41 = 0, a42 = 0, a43 = 0, a44 = 0, a45: Int?
        var a46 = 0, a47 = 0, a48 = 0, a49 = 0, a50 = 0, a51 = 0, a52: Int?, a53 = 0, a54 = 0
        var a55 = 0, a56 = 0, a57 = 0, a58 = 0, a59: Int?, a60 = 0, a61 = 0, a62 = 0, a63 = 0
        var a64 = 0, a65 = 0, a66: Int?, a67 = 0, a68 = 0, a69 = 0, a70 = 0, a71 = 0, a72 = 0
        var a73: Int?, a74 = 0, a75 = 0, a76 = 0, a77 = 0, a78 = 0, a79 = 0, a80: Int?, a81 = 0
        var a82 = 0, a83 = 0, a84 = 0, a85 = 0, a86 = 0, a87: Int?, a88 = 0, a89 = 0, a90 = 0
        var a91 = 0, a92 = 0, a93 = 0, a94: Int?, a95 = 0, a96 = 0, a97 = 0, a98 = 0, a99 = 0
    }

    struct Columns101<P: RecordPathsTests.Path>: WideRecord {
        static var access: RecordAccess { P.access }
        static var table: String { "columns" }
        var a0 = 0, a1 = 0, a2 = 0, a3: Int?, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0
        var a10: Int?, a11 = 0, a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0, a17: Int?, a18 = 0
        var a19 = 0, a20 = 0, a21 = 0, a22 = 0, a23 = 0, a24: Int?, a25 = 0, a26 = 0, a27 = 0
        var a28 = 0, a29 = 0, a30 = 0, a31: Int?, a32 = 0, a33 = 0, a34 = 0, a35 = 0, a36 = 0
        var a37 = 0, a38: Int?, a39 = 0, a40 = 0, a41 = 0, a42 = 0, a43 = 0, a44 = 0, a45: Int?
        var a46 = 0, a47 = 0, a48 = 0, a49 = 0, a50 = 0, a51 = 0, a52: Int?, a53 = 0, a54 = 0
        var a55 = 0, a56 = 0, a57 = 0, a58 = 0, a59: Int?, a60 = 0, a61 = 0, a62 = 0, a63 = 0
        var a64 = 0, a65 = 0, a66: Int?, a67 = 0, a68 = 0, a69 = 0, a70 = 0, a71 = 0, a72 = 0
        var a73: Int?, a74 = 0, a75 = 0, a76 = 0, a77 = 0, a78 = 0, a79 = 0, a80: Int?, a81 = 0
        var a82 = 0, a83 = 0, a84 = 0, a85 = 0, a86 = 0, a87: Int?, a88 = 0, a89 = 0, a90 = 0
        var a91 = 0, a92 = 0, a93 = 0, a94: Int?, a95 = 0, a96 = 0, a97 = 0, a98 = 0, a99 = 0
        var a100 = 0
    }

    struct Columns127<P: RecordPathsTests.Path>: WideRecord {
        static var access: RecordAccess { P.access }
        static var table: String { "columns" }
        var a0 = 0, a1 = 0, a2 = 0, a3: Int?, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0
        var a10: Int?, a11 = 0, a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0, a17: Int?, a18 = 0
        var a19 = 0, a20 = 0, a21 = 0, a22 = 0, a23 = 0, a24: Int?, a25 = 0, a26 = 0, a27 = 0
        var a28 = 0, a29 = 0, a30 = 0, a31: Int?, a32 = 0, a33 = 0, a34 = 0, a35 = 0, a36 = 0
        var a37 = 0, a38: Int?, a39 = 0, a40 = 0, a41 = 0, a42 = 0, a43 = 0, a44 = 0, a45: Int?
        var a46 = 0, a47 = 0, a48 = 0, a49 = 0, a50 = 0, a51 = 0, a52: Int?, a53 = 0, a54 = 0
        var a55 = 0, a56 = 0, a57 = 0, a58 = 0, a59: Int?, a60 = 0, a61 = 0, a62 = 0, a63 = 0
        var a64 = 0, a65 = 0, a66: Int?, a67 = 0, a68 = 0, a69 = 0, a70 = 0, a71 = 0, a72 = 0
        var a73: Int?, a74 = 0, a75 = 0, a76 = 0, a77 = 0, a78 = 0, a79 = 0, a80: Int?, a81 = 0
        var a82 = 0, a83 = 0, a84 = 0, a85 = 0, a86 = 0, a87: Int?, a88 = 0, a89 = 0, a90 = 0
        var a91 = 0, a92 = 0, a93 = 0, a94: Int?, a95 = 0, a96 = 0, a97 = 0, a98 = 0, a99 = 0
        var a100 = 0, a101: Int?, a102 = 0, a103 = 0, a104 = 0, a105 = 0, a106 = 0, a107 = 0
        var a108: Int?, a109 = 0, a110 = 0, a111 = 0, a112 = 0, a113 = 0, a114 = 0, a115: Int?
        var a116 = 0, a117 = 0, a118 = 0, a119 = 0, a120 = 0, a121 = 0, a122: Int?, a123 = 0
        var a124 = 0, a125 = 0, a126 = 0
    }

    struct Columns128<P: RecordPathsTests.Path>: WideRecord {
        static var access: RecordAccess { P.access }
        static var table: String { "columns" }
        var a0 = 0, a1 = 0, a2 = 0, a3: Int?, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0
        var a10: Int?, a11 = 0, a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0, a17: Int?, a18 = 0
        var a19 = 0, a20 = 0, a21 = 0, a22 = 0, a23 = 0, a24: Int?, a25 = 0, a26 = 0, a27 = 0
        var a28 = 0, a29 = 0, a30 = 0, a31: Int?, a32 = 0, a33 = 0, a34 = 0, a35 = 0, a36 = 0
        var a37 = 0, a38: Int?, a39 = 0, a40 = 0, a41 = 0, a42 = 0, a43 = 0, a44 = 0, a45: Int?
        var a46 = 0, a47 = 0, a48 = 0, a49 = 0, a50 = 0, a51 = 0, a52: Int?, a53 = 0, a54 = 0
        var a55 = 0, a56 = 0, a57 = 0, a58 = 0, a59: Int?, a60 = 0, a61 = 0, a62 = 0, a63 = 0
        var a64 = 0, a65 = 0, a66: Int?, a67 = 0, a68 = 0, a69 = 0, a70 = 0, a71 = 0, a72 = 0
        var a73: Int?, a74 = 0, a75 = 0, a76 = 0, a77 = 0, a78 = 0, a79 = 0, a80: Int?, a81 = 0
        var a82 = 0, a83 = 0, a84 = 0, a85 = 0, a86 = 0, a87: Int?, a88 = 0, a89 = 0, a90 = 0
        var a91 = 0, a92 = 0, a93 = 0, a94: Int?, a95 = 0, a96 = 0, a97 = 0, a98 = 0, a99 = 0
        var a100 = 0, a101: Int?, a102 = 0, a103 = 0, a104 = 0, a105 = 0, a106 = 0, a107 = 0
        var a108: Int?, a109 = 0, a110 = 0, a111 = 0, a112 = 0, a113 = 0, a114 = 0, a115: Int?
        var a116 = 0, a117 = 0, a118 = 0, a119 = 0, a120 = 0, a121 = 0, a122: Int?, a123 = 0
        var a124 = 0, a125 = 0, a126 = 0, a127 = 0
    }

    struct Columns140<P: RecordPathsTests.Path>: WideRecord {
        static var access: RecordAccess { P.access }
        static var table: String { "columns" }
        var a0 = 0, a1 = 0, a2 = 0, a3: Int?, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0
        var a10: Int?, a11 = 0, a12 = 0, a13 = 0, a14 = 0, a15 = 0, a16 = 0, a17: Int?, a18 = 0
        var a19 = 0, a20 = 0, a21 = 0, a22 = 0, a23 = 0, a24: Int?, a25 = 0, a26 = 0, a27 = 0
        var a28 = 0, a29 = 0, a30 = 0, a31: Int?, a32 = 0, a33 = 0, a34 = 0, a35 = 0, a36 = 0
        var a37 = 0, a38: Int?, a39 = 0, a40 = 0, a41 = 0, a42 = 0, a43 = 0, a44 = 0, a45: Int?
        var a46 = 0, a47 = 0, a48 = 0, a49 = 0, a50 = 0, a51 = 0, a52: Int?, a53 = 0, a54 = 0
        var a55 = 0, a56 = 0, a57 = 0, a58 = 0, a59: Int?, a60 = 0, a61 = 0, a62 = 0, a63 = 0
        var a64 = 0, a65 = 0, a66: Int?, a67 = 0, a68 = 0, a69 = 0, a70 = 0, a71 = 0, a72 = 0
        var a73: Int?, a74 = 0, a75 = 0, a76 = 0, a77 = 0, a78 = 0, a79 = 0, a80: Int?, a81 = 0
        var a82 = 0, a83 = 0, a84 = 0, a85 = 0, a86 = 0, a87: Int?, a88 = 0, a89 = 0, a90 = 0
        var a91 = 0, a92 = 0, a93 = 0, a94: Int?, a95 = 0, a96 = 0, a97 = 0, a98 = 0, a99 = 0
        var a100 = 0, a101: Int?, a102 = 0, a103 = 0, a104 = 0, a105 = 0, a106 = 0, a107 = 0
        var a108: Int?, a109 = 0, a110 = 0, a111 = 0, a112 = 0, a113 = 0, a114 = 0, a115: Int?
        var a116 = 0, a117 = 0, a118 = 0, a119 = 0, a120 = 0, a121 = 0, a122: Int?, a123 = 0
        var a124 = 0, a125 = 0, a126 = 0, a127 = 0, a128 = 0, a129: Int?, a130 = 0, a131 = 0
        var a132 = 0, a133 = 0, a134 = 0, a135 = 0, a136: Int?, a137 = 0, a138 = 0, a139 = 0
    }

    @Test(arguments: [100, 101, 127, 128, 140])
    func `any number of columns gives the same rows both ways`(count: Int) throws {
        typealias Own = RecordPathsTests.Own
        typealias Stored = RecordPathsTests.Stored
        switch count {
        case 100: try check(Columns100<Own>.self, Columns100<Stored>.self, count)
        case 101: try check(Columns101<Own>.self, Columns101<Stored>.self, count)
        case 127: try check(Columns127<Own>.self, Columns127<Stored>.self, count)
        case 128: try check(Columns128<Own>.self, Columns128<Stored>.self, count)
        default: try check(Columns140<Own>.self, Columns140<Stored>.self, count)
        }
    }

    private func check<O: WideRecord, S: WideRecord>(
        _ own: O.Type, _ stored: S.Type, _ count: Int
    ) throws {
        #expect(try S.accessReport().reason == nil)
        let ownRecords = try (1...5).map { try record(O.self, $0) }
        let storedRecords = try (1...5).map { try record(S.self, $0) }
        try fixture.store.write { tx in
            try tx.insert(ownRecords)
            try tx.insert(storedRecords)
        }
        let rows = try fixture.store.read { tx in
            try tx.rows("SELECT * FROM columns ORDER BY rowid").map(\.values)
        }
        #expect(rows.map(\.count) == [Int](repeating: count, count: 10))
        #expect(rows.prefix(5) == rows.suffix(5))
        try compareReads(ownRecords + ownRecords)
        try compareReads(storedRecords + storedRecords)
        try fixture.execute(SQL(text: "UPDATE columns SET a\(count - 1) = 'x' WHERE a0 = 5"))
        try expectMismatch(O.self, "a\(count - 1)")
        try expectMismatch(S.self, "a\(count - 1)")
    }

    /// Every column has its own value; the optional ones have none in every other record.
    private func record<R: WideRecord>(_ type: R.Type, _ number: Int) throws -> R {
        var values: [String: Int] = [:]
        for (position, child) in Mirror(reflecting: R()).children.enumerated() {
            let isOptional = child.value is Int? && !(child.value is Int)
            guard let label = child.label, !isOptional || number % 2 == 0 else { continue }
            values[label] = position == 0 ? number : number * 1_000 + position
        }
        return try JSONDecoder().decode(type, from: JSONEncoder().encode(values))
    }

    private func compareReads<R: WideRecord>(_ expected: [R]) throws {
        try fixture.store.read { tx throws in
            #expect(try tx.fetch(R.all) == expected)
            #expect(try tx.fetch(R.limit(99)) == expected)
            #expect(try tx.fetch(R.self, sql: "SELECT * FROM columns") == expected)
        }
    }

    private func expectMismatch<R: WideRecord>(_ type: R.Type, _ column: String) throws {
        try fixture.store.read { tx throws in
            for query in [R.all, R.limit(99)] {
                let error = expect(.mismatch) { try tx.fetch(query) }
                #expect(error?.column == column)
            }
        }
    }
}
