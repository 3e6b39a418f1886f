/// How the values of a record type get into rows and out of them.
public enum RecordAccess: Sendable, Hashable {
    /// By the type's own `encode(to:)` and `init(from:)`: right for every type.
    case codable
    /// By the stored properties, each read and written where it lies in the struct, as C would.
    ///
    /// **The type's own `encode(to:)` and `init(from:)` are not called** for rows, nor are
    /// initialisers or property observers. So it is for structs whose coding is what the compiler
    /// makes of them. Coffer tries out once whether that is so, with samples for every column, and
    /// goes by `codable` where it is not; ``Record/accessReport()`` says why. The samples have the
    /// ends of ranges: an `init(from:)` that traps on these ends the program then.
    ///
    /// It gives the same rows and refuses the same values as `codable`, with fewer instructions.
    case storedProperties
}

/// How a record type is really read and written.
public struct RecordAccessReport: Sendable, Hashable {
    /// What is used.
    public let access: RecordAccess
    /// Why stored properties are not used; `nil` if they are.
    public let reason: String?
}

extension Record {
    /// The type's own coding.
    public static var access: RecordAccess { .codable }

    /// How the type is really read and written, and why it is not by its stored properties.
    ///
    /// ```swift
    /// #expect(try Note.accessReport().reason == nil)    // in a test of yours
    /// ```
    ///
    /// - Throws: `StoreError` `.misuse` for a type that cannot be reflected, saying what to
    ///   declare.
    /// - Complexity: The first time some calls of the type's coding for each column; then O(1).
    public static func accessReport() throws -> RecordAccessReport {
        switch try StoredProperties.of(self, RecordPlan.of(self)) {
        case .usable: RecordAccessReport(access: .storedProperties, reason: nil)
        case .unusable(let reason): RecordAccessReport(access: .codable, reason: reason)
        }
    }
}
