/// The type of a bucket's keys, which decides how the file stores and orders them.
///
/// Coffer records the type in the file, and refuses a bucket that is named with another one.
/// `Documentation/file-format.md` has the bytes of each type.
public struct BucketKeyType: Sendable, Hashable {
    /// The type of a simple key, or of one part of a composite key.
    enum Part: String, CaseIterable {
        case text, integer, bool, unsigned, date, uuid, bytes
    }

    /// One part, or the parts of a composite key in order.
    let parts: [Part]
    package let isComposite: Bool

    private init(_ part: Part) {
        (parts, isComposite) = ([part], false)
    }

    private init(parts: [Part]) {
        (self.parts, isComposite) = (parts, true)
    }

    /// Texts, in the order of their UTF-8 bytes, which is that of their Unicode scalars.
    public static let text = Self(.text)
    /// Integers that fit into 64 bits with a sign, in the order of their values.
    public static let integer = Self(.integer)
    /// `false`, then `true`.
    public static let bool = Self(.bool)
    /// Integers from 0 to `UInt64.max`, in the order of their values.
    public static let unsigned = Self(.unsigned)
    /// Dates, to the bit, in the order of time.
    public static let date = Self(.date)
    /// UUIDs, in the order of their bytes.
    public static let uuid = Self(.uuid)
    /// Bytes, in their order; a key comes before those that it begins.
    public static let bytes = Self(.bytes)

    /// Keys of several parts, in the order of the first, then of the second, and so on. The parts
    /// of a part that is a composite itself count one by one.
    public static func composite(_ parts: [BucketKeyType]) -> Self {
        Self(parts: parts.flatMap(\.parts))
    }

    /// The declared type of the key's column.
    var columnType: String {
        guard !isComposite, let part = parts.first else { return "BLOB" }
        return switch part {
        case .text: "TEXT"
        case .integer, .bool: "INTEGER"
        case .date: DateColumns.declaredType
        case .unsigned, .uuid, .bytes: "BLOB"
        }
    }

    /// The type with this name.
    ///
    /// - Parameter name: As `description` gives it, also in files.
    /// - Returns: `nil` for any other text.
    package init?(named name: String) {
        let isComposite = name.hasPrefix("(") && name.hasSuffix(")")
        let words = isComposite ? name.dropFirst().dropLast() : Substring(name)
        var parts: [Part] = []
        for word in words.split(separator: ", ", omittingEmptySubsequences: false) {
            guard let part = Part(rawValue: String(word)) else { return nil }
            parts.append(part)
        }
        guard isComposite || parts.count == 1 else { return nil }
        (self.parts, self.isComposite) = (parts, isComposite)
    }
}

extension BucketKeyType: CustomStringConvertible {
    /// The type's name, as the file records it: `text`, or `(uuid, date)` for two parts.
    public var description: String {
        let names = parts.map(\.rawValue).joined(separator: ", ")
        return isComposite ? "(\(names))" : names
    }
}
