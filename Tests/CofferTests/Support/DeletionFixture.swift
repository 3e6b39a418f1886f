import Foundation
import Testing

@testable import Coffer

/// A store in which deletions of many keys are compared with single ones.
struct DeletionFixture {
    let base: RecordFixture
    var store: Store { base.store }

    init() throws { base = try RecordFixture() }

    private struct Undo: Error {}

    /// The count, the error and the remaining rows of a deletion.
    private struct Outcome: Equatable {
        var count: Int?
        var error: String?
        var rows: [[Value]] = []
    }

    /// Deletes in a savepoint, notes the outcome, and undoes the deletion.
    private func outcome(
        _ tx: inout WriteTransaction, _ tables: [String],
        _ delete: (inout WriteTransaction) throws -> Int
    ) throws -> Outcome {
        var outcome = Outcome()
        do {
            try tx.savepoint { tx in
                do {
                    outcome.count = try delete(&tx)
                } catch let error as StoreError {
                    outcome.error = "\(error.code) \(error.message) \(error.column ?? "")"
                }
                for table in tables {
                    outcome.rows += try tx.rows("SELECT * FROM \(identifier: table) ORDER BY 1")
                        .map(\.values)
                }
                throw Undo()
            }
        } catch is Undo {}
        return outcome
    }

    /// Compares with single deletions; returns what happened.
    @discardableResult
    func check<R: Record, K: ValueConvertible>(
        _ type: R.Type, _ keys: [K], isMany: Bool = true, others: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Int? {
        try store.write { tx throws in
            let tables = [R.table] + others
            let singly = try outcome(&tx, tables) { tx throws in
                var count = 0
                for key in keys where try tx.delete(type, key: key) { count += 1 }
                return count
            }
            let many = try outcome(&tx, tables) { tx in try tx.delete(type, keys: keys) }
            #expect(many == singly, sourceLocation: sourceLocation)
            _ = try? tx.savepoint { tx throws in
                _ = try? tx.delete(type, keys: keys)
                let table = try RecordTable.of(type, tx.connection())
                #expect((table.deletingMany != nil) == isMany, sourceLocation: sourceLocation)
                throw Undo()
            }
            return many.count
        }
    }

    /// Runs SQL in one transaction.
    func run(_ statements: String...) throws {
        try store.write { tx in
            for sql in statements { try tx.execute(SQL(text: sql)) }
        }
    }

    /// A table `word` of this definition with these rows.
    func makeWords(_ definition: String, _ rows: [Value]) throws {
        try store.write { tx throws in
            try tx.execute("DROP TABLE IF EXISTS word")
            try tx.execute(SQL(text: "CREATE TABLE word(\(definition)"))
            for row in rows { try tx.execute("INSERT INTO word(key) VALUES (\(row))") }
        }
    }
}
