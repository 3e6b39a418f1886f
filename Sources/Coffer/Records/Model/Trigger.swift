/// A trigger of a record's table: statements that the file runs for each row that changes, whoever
/// changes it.
///
/// ```swift
/// static var triggers: [Trigger<Self>] {
///     [
///         Trigger(
///             "note_changed", .after, .update(of: \.title, \.text), when: "new.title <> ''",
///             sql: "UPDATE folder SET changed = julianday('now') WHERE id = new.folder"),
///     ]
/// }
/// ```
///
/// `new` and `old` are the row: see <https://www.sqlite.org/lang_createtrigger.html>. `create`
/// makes a missing trigger. In a migration it also replaces one with another text; elsewhere that
/// is `.mismatch`.
public struct Trigger<R: Record>: Sendable {
    /// Whether a trigger runs before or after the change of a row.
    public enum Timing: String, Sendable, CaseIterable {
        /// Before the change. The statements must not change the same row.
        case before = "BEFORE"
        /// After the change.
        case after = "AFTER"
    }

    /// The change that runs a trigger.
    public struct Event: Sendable {
        let name: String
        let paths: [PartialKeyPath<R> & Sendable]

        /// A new row. A row that REPLACE puts in another one's place is new.
        public static var insert: Event { Event(name: "INSERT", paths: []) }

        /// A row that is deleted. REPLACE deletes rows without it.
        public static var delete: Event { Event(name: "DELETE", paths: []) }

        /// A row whose values are set, to the same values too.
        public static var update: Event { Event(name: "UPDATE", paths: []) }

        /// A row of which one of these properties is set, to the same value too. Saving a record
        /// sets all of them.
        public static func update(of paths: (PartialKeyPath<R> & Sendable)...) -> Event {
            Event(name: "UPDATE", paths: paths)
        }
    }

    let name: String
    let timing: Timing
    let event: Event
    let condition: SQL?
    let statements: [SQL]

    /// Describes a trigger.
    ///
    /// Every program that writes the table runs it, so it calls functions that SQLite 3.15 has by
    /// itself, and no others. `\( )` inserts a value that SQL text keeps exactly.
    ///
    /// - Parameters:
    ///   - name: Its name in the file, which no other trigger may have.
    ///   - timing: Whether it runs before or after the change.
    ///   - event: The change that runs it.
    ///   - condition: The rows that it runs for, as SQL over `new` and `old`; `nil` for all.
    ///   - statement: An INSERT, UPDATE, DELETE or SELECT. Its tables have to be there when
    ///     `create` makes the trigger.
    ///   - others: Further statements, in order.
    public init(
        _ name: String, _ timing: Timing, _ event: Event, when condition: SQL? = nil,
        sql statement: SQL, _ others: SQL...
    ) {
        (self.name, self.timing, self.event) = (name, timing, event)
        self.condition = condition
        statements = [statement] + others
    }
}

/// A declared trigger, with column positions in place of key paths.
struct ResolvedTrigger: Sendable {
    let name: String
    let timing: String
    let event: String
    /// The columns after UPDATE OF; empty for all.
    let positions: [Int]
    let condition: SQL?
    let statements: [SQL]

    init<R: Record>(_ trigger: Trigger<R>, _ plan: RecordPlan) throws(StoreError) {
        name = trigger.name
        (timing, event) = (trigger.timing.rawValue, trigger.event.name)
        var positions: [Int] = []
        for path in trigger.event.paths { positions.append(try plan.position(of: path)) }
        self.positions = positions
        (condition, statements) = (trigger.condition, trigger.statements)
        guard !name.asciiLowercased.hasPrefix("coffer:") else {
            throw StoreError(
                .misuse, "\(name) is the name of a trigger that Coffer keeps for itself",
                hint: "Give it another name.", table: plan.table)
        }
    }

    /// The CREATE TRIGGER.
    func sql(_ plan: RecordPlan, _ connection: Connection) throws(StoreError) -> String {
        let schema = SchemaStatement(
            typeName: plan.typeName, table: plan.table, connection: connection)
        var text = "CREATE TRIGGER \(try name.quotedIdentifier()) \(timing) \(event) "
        if !positions.isEmpty {
            text += "OF \(positions.map { plan.quotedColumns[$0] }.joined(separator: ", ")) "
        }
        text += "ON \(plan.quotedTable) FOR EACH ROW "
        if let condition { text += "WHEN (\(try schema.text(condition))) " }
        text += "BEGIN "
        for statement in statements { text += "\(try schema.text(statement)); " }
        return text + "END"
    }
}
