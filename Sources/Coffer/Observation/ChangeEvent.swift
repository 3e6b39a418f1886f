#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One row that a commit has changed.
public struct ChangedRow: Sendable, Hashable {
    /// What happened to a row, from before the commit to after it.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// The row is new.
        case insert
        /// The row is the same by its key, and may have other values.
        case update
        /// The row is gone.
        case delete
    }

    /// The table's name, as the schema has it.
    public let table: String
    /// The values of the table's primary key, in its order. It is the row id in a table without a
    /// primary key, or with one that may be NULL.
    ///
    /// In SQLite a primary key may be NULL, even in many rows, unless its columns are NOT NULL, the
    /// table is WITHOUT ROWID, or it is a single INTEGER, which is the row id. Tables that Coffer
    /// creates for records have a primary key that is never NULL.
    public let key: [Value]
    /// What happened to the row.
    public let kind: Kind

    init(table: String, key: [Value], kind: Kind) {
        self.table = table
        self.key = key
        self.kind = kind
    }

    /// Whether both are the same change of the same row. Names and texts are compared byte for
    /// byte, as SQLite does.
    @_implements(Equatable,==(_:_:))
    public static func isEqual(_ left: ChangedRow, _ right: ChangedRow) -> Bool {
        SQLText(left.table) == SQLText(right.table) && left.key == right.key
            && left.kind == right.kind
    }

    /// Feeds what `==` compares.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(SQLText(table))
        hasher.combine(key)
        hasher.combine(kind)
    }

    /// The key as a Swift value, for keys of one column.
    ///
    /// ```swift
    /// for change in batch.changes where change.kind == .delete {
    ///     try await server.delete(change.key(as: UUID.self))
    /// }
    /// ```
    ///
    /// A change of a bucket has `key(in:)`, which knows how the bucket stores its keys.
    ///
    /// - Throws: `StoreError` `.mismatch` if the key has several columns, or if its value does not
    ///   fit `K`; always for a `Date`, because a change does not tell from when its number counts.
    public func key<K: ValueConvertible>(as type: K.Type = K.self) throws -> K {
        guard key.count == 1 else {
            throw StoreError(.mismatch, "the key has \(key.count) columns, not one", table: table)
        }
        guard K.self != Date.self, K.self != Date?.self else {
            throw StoreError(
                .mismatch, "a change does not tell from when its date counts",
                hint: "Use key(in:) for a bucket. For a record take the column's encoding: "
                    + "tx.dateEncoding(of: \\.created).date(of: change.key[0]).",
                table: table)
        }
        do throws(StoreError) { return try K(key[0]) } catch { throw error.with(table: table) }
    }
}

extension ChangedRow {
    /// The key of an entry that has changed.
    ///
    /// ```swift
    /// for change in rows { forget(try change.key(in: sessions)) }
    /// ```
    ///
    /// - Throws: `StoreError` `.mismatch` if the change is one of another table, or its key does
    ///   not fit `K`.
    /// - Complexity: O(*bytes* of the key).
    public func key<K, V>(in bucket: Bucket<K, V>) throws -> K {
        guard table.asciiLowercased == bucket.plan.table.asciiLowercased, key.count == 1 else {
            throw StoreError(
                .mismatch, "the change is not one of the bucket \(bucket.name)", table: table)
        }
        return try bucket.plan.key(key[0])
    }

    /// The key of an attachment that has changed. Otherwise as `key(in:)` of a bucket.
    ///
    /// - Throws: As `key(in:)` of a bucket.
    /// - Complexity: O(*bytes* of the key).
    public func key<K>(in bucket: AttachmentBucket<K>) throws -> K { try key(in: bucket.entries) }
}

/// An event of a loop over `Store.changes(in:)`.
public enum ChangeEvent: Sendable, Hashable {
    /// The rows that one commit has changed, each once; never empty. A row that the commit inserted
    /// and deleted again is not among them.
    case commit([ChangedRow])
    /// Rows have changed that cannot be listed: read what you need again. The event covers all
    /// commits up to the moment when the loop gets it.
    case rescan(Reason)

    /// Why rows cannot be listed. New reasons may be added.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        /// The reason's name, as written in this source: `overflow`.
        public let description: String

        /// Another process, or another connection of this one, has committed or may have; its
        /// changes are unknown.
        public static let elsewhere = Self(description: "elsewhere")
        /// The loop was too slow, and more rows waited for it than `maximumWaitingRowCount`.
        public static let overflow = Self(description: "overflow")
        /// One commit changed 10 000 rows of observed tables or more.
        public static let tooManyRows = Self(description: "tooManyRows")
        /// The commit changed the schema: tables may have been dropped, created or altered.
        public static let schema = Self(description: "schema")
        /// The write had begun before the loop did, so not all of it was recorded.
        public static let begunBefore = Self(description: "begunBefore")
        /// The commit replaced rows of a table with a unique index that is partial or on an
        /// expression, or it could not be recorded. Which rows were deleted is unknown.
        public static let unknown = Self(description: "unknown")
    }
}
