import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A property of a ``Record`` that stays in the file until it is asked for.
///
/// ```swift
/// struct Note: Record {
///     var id: UUID
///     var title: String
///     var body: Lazy<Data>
/// }
///
/// try tx.insert(Note(id: id, title: "a", body: Lazy(data)))
/// let notes = try tx.fetch(Note.order(by: \.title))      // reads no body
/// let body = try tx.load(\.body, of: notes[0])
/// ```
///
/// The column is that of the value: a BLOB for `Data`, a TEXT for `String`, nullable for
/// `Lazy<Data>?`. Fetched records tell whether it is NULL, and do not hold its value. Records of
/// `fetch(_:sql:)` and of `fetch(_:as:)` hold it.
///
/// `update` leaves the column of a value that is not loaded as it is. `insert`, `upsert` and
/// `update(_:only:)` with that property throw ``StoreError/Code/misuse``, and so does encoding it.
///
/// An `encode(to:)` of your own must name the property if it is `nil`: `encodeIfPresent(body,
/// forKey: .body)`, or `encodeNil`. A property that it leaves out is treated as a value that is not
/// loaded.
///
/// Two loaded values are equal if their contents are. A value that is not loaded is equal only to
/// its own copies: whether the file has the same bytes at another read is not known. So
/// `Store.observe(_:)` delivers such records after each commit to their table.
///
/// - Note: Declare it as the last property, because the engine reads through a large value to the
///   columns after it.
public struct Lazy<Wrapped: LazyValue>: Sendable, Hashable {
    private enum Content: Sendable, Hashable {
        case loaded(Wrapped)
        /// `read` tells the reads of a program apart.
        case inFile(byteCount: Int?, read: UInt64)
    }

    private let content: Content

    /// A loaded value.
    public init(_ value: Wrapped) {
        content = .loaded(value)
    }

    private init(_ content: Content) {
        self.content = content
    }

    /// Whether the value is in memory.
    public var isLoaded: Bool {
        if case .loaded = content { true } else { false }
    }

    /// The value in memory.
    ///
    /// - Throws: `StoreError` `.misuse` if it is not loaded.
    public var value: Wrapped {
        get throws {
            guard case .loaded(let value) = content else { throw StoreError.notLoaded }
            return value
        }
    }

    /// The bytes of the value, for a text in UTF-8; `nil` for a text that is not loaded.
    public var byteCount: Int? {
        switch content {
        case .loaded(let value): (value as? Data)?.count ?? (value as? String)?.utf8.count
        case .inFile(let byteCount, _): byteCount
        }
    }
}

/// The value of a ``Lazy`` property: `Data` or `String`. Do not conform other types to it.
public protocol LazyValue: Codable, Hashable, Sendable {}

extension Data: LazyValue {}
extension String: LazyValue {}

/// As the value itself.
extension Lazy: Codable {
    /// A loaded value.
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(Wrapped.self))
    }

    /// - Throws: `StoreError` `.misuse` if the value is not loaded.
    public func encode(to encoder: any Encoder) throws {
        let value = try value
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

/// Whether the value is loaded, and its size: never the value itself.
extension Lazy: CustomStringConvertible {
    /// Such as `Lazy(not loaded, 1024 bytes)`.
    public var description: String {
        let size = byteCount.map { ", \($0) bytes" } ?? ""
        return "Lazy(\(isLoaded ? "loaded" : "not loaded")\(size))"
    }
}

/// How many values that are not loaded this process has read.
private let lazyReadCount = Atomic<UInt64>(0)

/// Any `Lazy`, for code that does not know its value's type.
protocol LazyProperty {
    static var wrapped: Any.Type { get }
    /// A value that is not loaded; a negative number of bytes is unknown.
    static func inFile(byteCount: Int64) -> Self
    var isLoaded: Bool { get }
}

extension Lazy: LazyProperty {
    static var wrapped: Any.Type { Wrapped.self }

    static func inFile(byteCount: Int64) -> Self {
        let read = lazyReadCount.add(1, ordering: .relaxed).newValue
        return Self(.inFile(byteCount: byteCount < 0 ? nil : Int(byteCount), read: read))
    }
}

extension RecordColumn {
    /// Whether reads of records leave the value in the file.
    var isLazy: Bool { type is any LazyProperty.Type }
}

extension RecordPlan {
    /// Each column as a read of records selects it.
    ///
    /// SQLite answers `typeof`, and `length` of a blob, from the row's header. It then reads no
    /// page of the value.
    var selectedColumns: [String] { selected(qualifiedColumns) }

    /// The same of the table under another name.
    ///
    /// - Parameter table: The name, quoted.
    func selectedColumns(of table: String) -> [String] {
        guard table != quotedTable else { return selectedColumns }
        return selected(quotedColumns.map { "\(table).\($0)" })
    }

    private func selected(_ qualifiedColumns: [String]) -> [String] {
        guard hasLazy else { return qualifiedColumns }
        return columns.indices.map { position in
            let name = qualifiedColumns[position]
            guard columns[position].isLazy else { return name }
            return "CASE typeof(\(name)) WHEN 'null' THEN NULL "
                + "WHEN 'blob' THEN ifnull(length(\(name)), -1) ELSE -1 END"
        }
    }

    static func requireKey(
        isLoaded key: [RecordColumn], _ typeName: String
    ) throws(StoreError) {
        guard let column = key.first(where: \.isLazy) else { return }
        throw StoreError(
            .misuse, "the key of \(typeName) is a Lazy, and every read needs the key",
            hint: "Make the property one without Lazy.", column: column.name)
    }
}

extension StoreError {
    static var notLoaded: StoreError {
        StoreError(
            .misuse,
            "the value of a Lazy property is in the file and not loaded, or encode(to:) leaves it "
                + "out",
            hint: "Load it: try tx.load(\\.body, into: &record); or set it: Lazy(value). "
                + "update(record) leaves the column as it is. An encode(to:) names each Lazy "
                + "property, with encodeIfPresent or encodeNil if it is nil.")
    }
}
