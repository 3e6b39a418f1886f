import CSQLCipher

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Connection {
    /// Registers a collation: an order of texts, for `COLLATE`, `ORDER BY` and indexes.
    ///
    /// ```swift
    /// try connection.register(collation: "finder") { $0.localizedStandardCompare($1) }
    /// ```
    ///
    /// It lives as long as a registered function does. An index that was made with one order is
    /// wrong for another: give a changed order a new name. Texts that are not UTF-8 are compared
    /// with their invalid bytes replaced.
    ///
    /// - Parameters:
    ///   - name: The name, without regard to the case of ASCII letters.
    ///   - compare: A total order that always gives the same result for the same texts.
    /// - Throws: `StoreError` `.busy` if the collation exists and a statement has a current row;
    ///   `.misuse` for an empty name or one with NUL.
    /// - Note: The corresponding C function is `sqlite3_create_collation_v2`.
    public func register(
        collation name: String, _ compare: @escaping (String, String) -> ComparisonResult
    ) throws {
        try Self.requireFunctionName(name)
        try set("collation \(name.asciiLowercased)") { handle throws(StoreError) in
            let box = Unmanaged.passRetained(CollationBox(handle, compare))
            let code = sqlite3_create_collation_v2(
                handle.db, name, SQLITE_UTF8, box.toOpaque(), compareTexts
            ) { $0.map { Unmanaged<CollationBox>.fromOpaque($0).release() } }
            guard code == SQLITE_OK else {
                // Unlike with functions, the engine does not release the box of a refused
                // collation.
                box.release()
                throw handle.error(code)
            }
        }
    }

    /// Removes a collation; tables and indexes that use it cannot be used without it.
    ///
    /// - Throws: `StoreError` `.busy` while a statement has a current row.
    public func removeCollation(_ name: String) throws {
        if let handle {
            let code = sqlite3_create_collation_v2(handle.db, name, SQLITE_UTF8, nil, nil, nil)
            guard code == SQLITE_OK else { throw handle.error(code) }
        }
        settings.remove("collation \(name.asciiLowercased)")
    }
}

private final class CollationBox {
    /// `nil` once an adopted database went back to its owner with the collation still registered.
    var handle: Handle? { link.handle }
    private let link: HandleLink
    let compare: (String, String) -> ComparisonResult

    init(_ handle: Handle, _ compare: @escaping (String, String) -> ComparisonResult) {
        link = handle.link
        self.compare = compare
    }
}

private func compareTexts(
    pointer: UnsafeMutableRawPointer?, leftCount: Int32, left: UnsafeRawPointer?,
    rightCount: Int32, right: UnsafeRawPointer?
) -> Int32 {
    guard let pointer else { return 0 }
    let box = Unmanaged<CollationBox>.fromOpaque(pointer).takeUnretainedValue()
    func text(_ start: UnsafeRawPointer?, _ count: Int32) -> String {
        String(decoding: UnsafeRawBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }
    let was = box.handle?.callback.isRunning ?? false
    box.handle?.callback.isRunning = true
    defer { box.handle?.callback.isRunning = was }
    return Int32(box.compare(text(left, leftCount), text(right, rightCount)).rawValue)
}

extension Connection {
    /// The name of the collation by which SQL compares a column; BINARY for a column of a view or
    /// without a table.
    func collation(_ column: String, of table: String) throws(StoreError) -> String {
        var name: UnsafePointer<CChar>?
        let code = sqlite3_table_column_metadata(
            try current().db, nil, table, column, nil, &name, nil, nil, nil)
        // SQLite keeps the name until the next call.
        guard code == SQLITE_OK, let name else { return "BINARY" }
        return String(cString: name)
    }
}
