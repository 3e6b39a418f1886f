/// How Coffer moves the values of a record type into and out of rows.
public enum RecordAccess: Sendable, Hashable {
    /// The type's own `encode(to:)` and `init(from:)`, which are right for every type.
    case codable
    /// The stored properties, read and written directly in the struct's memory, as C would.
    ///
    /// **Coffer does not call the type's own `encode(to:)` and `init(from:)`** for rows, nor
    /// initialisers or property observers. So use it for structs whose coding the compiler
    /// synthesises. Coffer checks that once, with samples for every column. If the check fails, it
    /// uses `codable`, and ``Record/accessReport()`` gives the reason. The samples include the ends
    /// of ranges, so an `init(from:)` that traps on these ends the program.
    ///
    /// It gives the same rows and refuses the same values as `codable`, with fewer instructions.
    case storedProperties
}

/// The access that Coffer actually uses for a record type.
public struct RecordAccessReport: Sendable, Hashable {
    /// The access in use.
    public let access: RecordAccess
    /// Why Coffer does not use stored properties; `nil` if it does.
    public let reason: String?
}

extension Record {
    /// The type's own coding.
    public static var access: RecordAccess { .codable }

    /// The access that Coffer actually uses for the type, and why it is not the stored properties.
    ///
    /// ```swift
    /// #expect(try Note.accessReport().reason == nil)    // in a test of yours
    /// ```
    ///
    /// - Throws: `StoreError` `.misuse` for a type that cannot be reflected; the error names the
    ///   declaration that is missing.
    /// - Complexity: The first call runs the type's coding a few times per column; then O(1).
    public static func accessReport() throws -> RecordAccessReport {
        switch try StoredProperties.of(self, RecordPlan.of(self)) {
        case .usable: RecordAccessReport(access: .storedProperties, reason: nil)
        case .unusable(let reason): RecordAccessReport(access: .codable, reason: reason)
        }
    }
}
